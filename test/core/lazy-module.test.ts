// Code that is loaded on first use: calls made before it is there begin in their order, in their callers' contexts.
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { LazyModule } from "../../src/core/lazy-module.ts";

/** A module whose import ends when the test says so. */
function lazy() {
  const imports: { resolve(code: string): void; reject(error: Error): void }[] = [];
  const code = new LazyModule(
    () => new Promise<string>((resolve, reject) => imports.push({ resolve, reject })),
  );
  return { code, imports };
}

describe("calls before the code is loaded", () => {
  it("begin in their order, and those that they make begin after them", async () => {
    const { code, imports } = lazy();
    const order: string[] = [];
    const first = code.call(() => {
      order.push("first");
      return code.call(() => order.push("made by the first"));
    });
    const second = code.call(() => order.push("second"));
    expect(code.isReady).toBe(false);
    imports[0]?.resolve("code");
    await Promise.all([first, second]);
    expect(order).toEqual(["first", "second", "made by the first"]);
    expect(code.isReady).toBe(true);
    const later = code.call(() => order.push("later"));
    expect(order.at(-1)).toBe("later");
    await later;
    expect(imports).toHaveLength(1);
  });

  it("run in the contexts of their callers", async () => {
    const { code, imports } = lazy();
    const storage = new AsyncLocalStorage<string>();
    const calls = ["one", "two"].map((name) => storage.run(name, () => code.call(() => storage.getStore())));
    imports[0]?.resolve("code");
    expect(await Promise.all(calls)).toEqual(["one", "two"]);
  });

  it("fail with what they throw, and the others begin all the same", async () => {
    const { code, imports } = lazy();
    const failing = code.call(() => {
      throw new Error("mine");
    });
    const other = code.call((loaded) => loaded);
    imports[0]?.resolve("code");
    await expect(failing).rejects.toThrow("mine");
    expect(await other).toBe("code");
  });

  it("fail with the import, which the next call tries again", async () => {
    const { code, imports } = lazy();
    const failing = [code.call(() => 1), code.call(() => 2)];
    imports[0]?.reject(new Error("no such file"));
    for (const each of failing) await expect(each).rejects.toThrow("no such file");
    const next = code.call((loaded) => loaded);
    imports[1]?.resolve("code");
    expect(await next).toBe("code");
  });
});
