// A shared store whose code is still being loaded: calls wait and begin in their order, as they would have at once.
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { DeferredNamespace } from "../../../src/cache/deferred-namespace.ts";
import { sharedCode } from "../../../src/cache/deferred-store.ts";
import { createCopier } from "../../../src/codec/copier.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { LazyModule } from "../../../src/core/lazy-module.ts";
import type { EntryOptions, Namespace, NamespaceFace } from "../../../src/core/namespace.ts";
import { ChaosBackend } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { runFolder } from "../../support/run-folder.ts";

const OPTIONS: EntryOptions = { ttlMs: 1_000, staleMs: 0, tags: [] };

describe("a namespace while its code is being loaded", () => {
  let begun: unknown[][];
  let faces: NamespaceFace[];
  let resolve: (code: string) => void;
  let reject: (error: Error) => void;
  let namespace: DeferredNamespace<string>;

  /** Answers every call with its name, and records it. */
  const recording = (): Namespace =>
    new Proxy({} as Namespace, {
      get:
        (_, name) =>
        (...args: unknown[]) => {
          begun.push([name, ...args]);
          if (name === "child") return recording();
          if (name === "get") (args[1] as { answered(value: unknown): void }).answered("value");
          return name === "peek" ? "peeked" : Promise.resolve(name);
        },
    });

  beforeEach(() => {
    begun = [];
    faces = [];
    const code = new LazyModule<string>(
      () =>
        new Promise((loaded, failed) => {
          resolve = loaded;
          reject = failed;
        }),
    );
    namespace = new DeferredNamespace({
      code,
      open: (_, face) => {
        faces.push(face);
        return recording();
      },
      copier: createCopier({ maxBytes: 1_000, maxDepth: 10 }),
      clock: systemClock,
      freezes: false,
    });
  });

  it("begins its calls in their order, with the values as they were", async () => {
    const value = { count: 1 };
    const keys = ["a"];
    const calls = [
      namespace.set("a", value, OPTIONS),
      namespace.delete(keys),
      namespace.invalidateTags(keys),
      namespace.clear(),
    ];
    value.count = 2;
    keys.push("b");
    expect(namespace.peek("a")).toBeUndefined();
    expect(begun).toEqual([]);
    resolve("code");
    await Promise.all(calls);
    expect(begun.map(([name]) => name)).toEqual(["set", "delete", "invalidateTags", "clear"]);
    expect(begun[0]?.[2]).toEqual({ count: 1 });
    expect(begun[1]?.[1]).toEqual(["a"]);
    expect(faces).toEqual([namespace]);
  });

  it("records changes at once, for loads that have begun", () => {
    const since = namespace.changes.begin("a");
    void namespace.set("a", 1, OPTIONS);
    expect(namespace.changes.touched("a", [], since)).toBe(true);
    const tagged = namespace.changes.begin("b");
    void namespace.invalidateTags(["t"]);
    expect(namespace.changes.touched("b", ["t"], tagged)).toBe(true);
    const child = namespace.child("sub");
    const below = child.changes.begin("c");
    void namespace.clear();
    expect(child.changes.touched("c", [], below)).toBe(true);
  });

  it("rejects a value that cannot be stored at once", () => {
    expect(() => namespace.set("a", () => 1, OPTIONS)).toThrow(/function/);
  });

  it("is replaced by the namespace itself once every waiting call has begun", async () => {
    const waiting = namespace.inspect("a");
    const replacing = new Promise<{ readonly ready: Namespace }>((done) =>
      namespace.whenReady((ready) => done({ ready })),
    );
    resolve("code");
    const { ready } = await replacing;
    expect(ready.peek("x")).toBe("peeked");
    expect(begun.map(([name]) => name)).toEqual(["inspect", "peek"]);
    await waiting;
    expect(namespace.peek("x")).toBe("peeked");
    let isReplaced = false;
    namespace.whenReady(() => {
      isReplaced = true;
    });
    expect(isReplaced).toBe(true);
  });

  it("fails its calls with the error of the import", async () => {
    const failed = new Promise((done) =>
      namespace.get("a", { answered: () => done("a value"), failed: done }),
    );
    const inspected = namespace.inspect("a");
    reject(new Error("no such file"));
    expect(await failed).toEqual(new Error("no such file"));
    await expect(inspected).rejects.toThrow("no such file");
  });
});

describe("a cache that is opened before the code is loaded", () => {
  beforeEach(() => {
    sharedCode.loaded = undefined;
  });

  it("encrypts with the secrets it was given, even if they are overwritten at once", async () => {
    const records = new MemoryBackend();
    const open = (secret: Uint8Array): XCache =>
      new XCache({ backend: new ChaosBackend(records), encryption: { keys: { only: secret } } });
    const secret = Buffer.alloc(32, 7);
    const writer = open(secret);
    secret.fill(0);
    const reader = open(Buffer.alloc(32, 7));
    await writer.set("a", 1);
    expect(await reader.get("a")).toBe(1);
    await Promise.all([writer.disconnect(), reader.disconnect()]);
  });
});

/** What a program prints that runs in a process of its own, where nothing is loaded yet. */
function printedBy(program: string): string {
  const dist = (path: string): string =>
    JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../../dist", path)).href);
  const path = join(mkdtempSync(join(runFolder(), "deferred-")), "program.mjs");
  writeFileSync(
    path,
    `import { AsyncLocalStorage } from "node:async_hooks";
    import { MemoryBackend, XCache } from ${dist("index.js")};
    import { ChaosBackend } from ${dist("testing/index.js")};
    // Not the memory store itself, but records in memory behind a shared store.
    const open = () => new XCache({ backend: new ChaosBackend(new MemoryBackend()) });
    ${program}`,
  );
  return execFileSync(process.execPath, [path], { encoding: "utf8" });
}

describe("the first cache on a shared store in a process", () => {
  it("keeps the context of callers, for loads and listeners", () => {
    const printed = printedBy(`
      const storage = new AsyncLocalStorage();
      const cache = open();
      cache.on("miss", () => console.log("miss in", storage.getStore()));
      await Promise.all(["one", "two"].map((name) =>
        storage.run(name, () => cache.getOrSet(name, () => console.log("load in", storage.getStore()) ?? name))));
      console.log(await cache.get("one"), await cache.namespace("sub").get("one"));
      await cache.disconnect();
    `);
    const lines = ["load in one", "load in two", "miss in one", "miss in two", "one undefined"];
    expect(printed.trim().split("\n").toSorted()).toEqual(lines);
  });

  it("answers calls made in one turn as the second cache does, whose code is loaded", () => {
    const printed = printedBy(`
      for (const time of ["first", "second"]) {
        const cache = open();
        const value = { count: 1 };
        const calls = [
          cache.set("a", value), cache.get("a"), cache.delete("b"), cache.set("b", 1), cache.set("b", 2),
          cache.set("c", 1, { tags: ["t"] }), cache.invalidateTags("t"), cache.set("d", 1), cache.delete("d"),
        ];
        value.count = 9;
        const answers = (await Promise.all(calls)).map((answer) => answer ?? null);
        const left = await cache.getMany(["a", "b", "c", "d"]);
        console.log(JSON.stringify([answers, ...left]));
        await cache.disconnect();
      }
    `);
    const [first, second] = printed.trim().split("\n");
    expect(first).toBe(second);
    expect(first).toContain('["a",{"count":1}],["b",2]');
  });

  it("may be of a subclass, whose methods are called", () => {
    const printed = printedBy(`
      class Mine extends XCache {
        get(key) { return super.get("mine:" + key); }
        set(key, value, options) { return super.set("mine:" + key, value, options); }
      }
      const cache = new Mine({ backend: new ChaosBackend(new MemoryBackend()) });
      await cache.set("a", 1);
      console.log(cache instanceof XCache, await cache.get("a"), await cache.exists("mine:a"));
      await cache.disconnect();
    `);
    expect(printed).toBe("true 1 true\n");
  });

  it("is refused at once if its configuration is wrong", () => {
    const printed = printedBy(`
      const refused = (config) => { try { new XCache(config); } catch (error) { return error.name + " " + error.code; } };
      console.log(refused({ kvUrl: "reddis://localhost" }));
      console.log(refused({ kvUrl: "redis://localhost", operationTimeout: -1 }));
      console.log(refused({ kvUrl: "redis://localhost", encryption: { keys: { a: "short" }, use: "a" } }));
    `);
    expect(printed.trim().split("\n")).toEqual([
      "ConfigError CONFIG_INVALID",
      "ConfigError CONFIG_INVALID",
      "ConfigError CONFIG_INVALID",
    ]);
  });

  it("may be disconnected before the code is loaded, and opened again", () => {
    const printed = printedBy(`
      const cache = open();
      const early = cache.set("a", 1).then(() => "stored", ({ code }) => code);
      await cache.disconnect();
      console.log(["stored", "DISCONNECTED"].includes(await early));
      console.log(await cache.get("a").catch(({ code }) => code));
      await cache.connect();
      await cache.set("a", 2);
      console.log(await cache.get("a"));
      await cache.disconnect();
    `);
    expect(printed).toBe("true\nDISCONNECTED\n2\n");
  });
});
