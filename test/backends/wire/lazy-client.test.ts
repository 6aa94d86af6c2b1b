// A client is opened by the first call that needs it, once its code is loaded, and by none after it was closed.
import { describe, expect, it } from "vitest";
import { LazyClient } from "../../../src/backends/wire/lazy-client.ts";
import { LazyModule } from "../../../src/core/lazy-module.ts";

class Client {
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
}

interface Code {
  readonly Client: typeof Client;
}

/** Code whose import ends when the test decides. */
function lateCode() {
  const imports: { resolve: (code: Code) => void; reject: (error: Error) => void }[] = [];
  const code = new LazyModule<Code>(
    () => new Promise((resolve, reject) => imports.push({ resolve, reject })),
  );
  const opened: Client[] = [];
  const onUse = new LazyClient(code, (loaded) => {
    const client = new loaded.Client();
    opened.push(client);
    return client;
  });
  return { onUse, opened, imports, code };
}

describe("before the code is loaded", () => {
  it("nothing is opened, and calls wait in order", async () => {
    const { onUse, opened, imports } = lateCode();
    const order: string[] = [];
    const first = onUse.use(async () => order.push("first"));
    onUse.later(
      () => order.push("second"),
      () => order.push("failed"),
    );
    expect([onUse.ready, onUse.opened, opened.length]).toEqual([undefined, undefined, 0]);
    for (const { resolve } of imports) resolve({ Client });
    await first;
    await onUse.whenReady();
    expect(order).toEqual(["first", "second"]);
    expect(opened).toHaveLength(1);
  });

  it("calls are rejected once the client is closed, until it is reopened", async () => {
    const { onUse, opened, imports } = lateCode();
    const used = onUse.use(async () => "used");
    const failures: unknown[] = [];
    onUse.later(
      () => failures.push("it was called"),
      (error) => failures.push(error),
    );
    onUse.close();
    for (const { resolve } of imports) resolve({ Client });
    await expect(used).rejects.toMatchObject({ code: "DISCONNECTED" });
    expect(failures).toMatchObject([{ code: "DISCONNECTED" }]);
    expect(opened).toHaveLength(0);
    await expect(onUse.use(async (client) => client)).rejects.toMatchObject({ code: "DISCONNECTED" });
    onUse.reopen();
    expect(await onUse.use(async (client) => client)).toBe(opened[0]);
  });

  it("a call that throws once it runs is rejected with its error", async () => {
    const { onUse, imports } = lateCode();
    const failure = new Error("it cannot be written");
    const rejection = new Promise((resolve) => {
      onUse.later(() => {
        throw failure;
      }, resolve);
    });
    for (const { resolve } of imports) resolve({ Client });
    expect(await rejection).toBe(failure);
  });

  it("an import that fails rejects the calls that waited for it, and is retried by the next", async () => {
    const { onUse, imports } = lateCode();
    onUse.prepare();
    const used = onUse.use(async () => "used");
    for (const { reject } of imports.splice(0)) reject(new Error("no such file"));
    await expect(used).rejects.toThrow("no such file");
    const again = onUse.use(async () => "used");
    for (const { resolve } of imports) resolve({ Client });
    expect(await again).toBe("used");
  });
});

describe("once it is loaded", () => {
  it("a call runs immediately, on the one client until it is closed", async () => {
    const { onUse, opened, imports } = lateCode();
    onUse.prepare();
    imports[0]?.resolve({ Client });
    await onUse.whenReady();
    const seen: Client[] = [];
    void onUse.use(async (client) => seen.push(client));
    expect(seen).toEqual([opened[0]]);
    expect(onUse.ready).toBe(opened[0]);
    onUse.close();
    expect([opened[0]?.isClosed, onUse.opened, onUse.ready]).toEqual([true, undefined, undefined]);
    onUse.reopen();
    void onUse.use(async (client) => seen.push(client));
    expect(opened).toHaveLength(2);
    expect(seen[1]).toBe(opened[1]);
  });

  it("other clients of the same code find it loaded", async () => {
    const { onUse, code, imports } = lateCode();
    onUse.prepare();
    imports[0]?.resolve({ Client });
    await onUse.whenReady();
    const another = new LazyClient(code, (loaded: Code) => new loaded.Client());
    expect(another.ready).toBeInstanceOf(Client);
    expect(imports).toHaveLength(1);
  });
});
