// Contract cases: getOrSet runs one load, stores its result with the given options, and passes on its errors.
import assert from "node:assert/strict";
import { CodecError, OperationTimeoutError } from "../../core/errors.ts";
import type { LoadContext } from "../../core/options.ts";
import { assertAbsent } from "./cache-operation.ts";
import { HeldLoad } from "./held-load.ts";
import { type ContractGroup, rule } from "./stage.ts";

const CALLERS = 50;

const flights = [
  rule("concurrent callers of a missing key share one load, and its result is stored", async (stage) => {
    const cache = stage.cache();
    const held = new HeldLoad<string>();
    const calls = Array.from({ length: CALLERS }, () => cache.getOrSet("key", held.load, { tags: ["tag"] }));
    await stage.until(held.started);
    calls.push(cache.getOrSet("key", held.load, { tags: ["tag"] }));
    held.finish("loaded");
    assert.deepEqual(new Set(await stage.until(Promise.all(calls))), new Set(["loaded"]));
    assert.equal(held.runs, 1);
    assert.equal(await cache.get("key"), "loaded");
    assert.deepEqual(await cache.tags("key"), ["tag"]);
    assert.equal(await stage.until(cache.getOrSet("key", held.load)), "loaded");
    assert.equal(held.runs, 1);
  }),
  rule("loads of different keys run concurrently", async (stage) => {
    const cache = stage.cache();
    const [first, second] = [new HeldLoad<number>(), new HeldLoad<number>()];
    const calls = [cache.getOrSet("a", first.load), cache.getOrSet("b", second.load)];
    await stage.until(Promise.all([first.started, second.started]));
    second.finish(2);
    first.finish(1);
    assert.deepEqual(await stage.until(Promise.all(calls)), [1, 2]);
  }),
  rule("every waiting caller gets the load's original error, and nothing is stored", async (stage) => {
    const cache = stage.cache();
    const held = new HeldLoad<string>();
    const failure = new Error("the load failed");
    const calls = Array.from({ length: CALLERS }, () => cache.getOrSet("key", held.load));
    await stage.until(held.started);
    held.fail(failure);
    const outcomes = await stage.until(Promise.allSettled(calls));
    assert.equal(held.runs, 1);
    for (const outcome of outcomes) assert.equal(outcome.status === "rejected" && outcome.reason, failure);
    await assertAbsent(cache, "key");
    assert.equal(await stage.until(cache.getOrSet("key", () => "again")), "again");
  }),
  rule("a load that throws synchronously rejects the call", async (stage) => {
    const cache = stage.cache();
    const failure = new RangeError("thrown");
    const failing = (): never => {
      throw failure;
    };
    await assert.rejects(stage.until(cache.getOrSet("key", failing)), failure);
    assert.equal(await stage.until(cache.getOrSet("key", () => 1)), 1);
  }),
  rule("a load outlives a caller's hard timeout and is not started twice", async (stage) => {
    const cache = stage.cache();
    const held = new HeldLoad<string>();
    const timeout = { hardTimeout: 0.05 };
    const isLate = (error: unknown): boolean =>
      error instanceof OperationTimeoutError && error.code === "LOAD_TIMEOUT";
    await assert.rejects(stage.until(cache.getOrSet("key", held.load, timeout)), isLate);
    await assert.rejects(stage.until(cache.getOrSet("key", held.load, timeout)), isLate);
    const patient = cache.getOrSet("key", held.load);
    held.finish("late");
    assert.equal(await stage.until(patient), "late");
    assert.equal(held.runs, 1);
    assert.equal(await cache.get("key"), "late");
  }),
];

const options = [
  rule("a load can set its ttl and tags", async (stage) => {
    const cache = stage.cache();
    await stage.until(
      cache.getOrSet(
        "key",
        async (context) => {
          context.setTtl(40);
          context.setTags(["late", "early"]);
          return 1;
        },
        { ttl: 1000, tags: ["early"] },
      ),
    );
    const ttl = await cache.ttl("key");
    assert.ok(ttl !== undefined && ttl > 0.1 && ttl <= 40, `ttl is ${ttl}`);
    assert.deepEqual((await cache.tags("key"))?.sort(), ["early", "late"]);
    await cache.invalidateTags("late");
    await assertAbsent(cache, "key");
  }),
  rule("a skipped result and undefined are returned but not stored", async (stage) => {
    const cache = stage.cache();
    const skipping = (context: LoadContext<string>): string => {
      context.skip();
      return "skipped";
    };
    assert.equal(await stage.until(cache.getOrSet("key", skipping)), "skipped");
    await assertAbsent(cache, "key");
    assert.equal(await stage.until(cache.getOrSet("key", () => undefined)), undefined);
    await assertAbsent(cache, "key");
    assert.equal(await stage.until(cache.getOrSet("key", () => "stored")), "stored");
    assert.equal(await cache.get("key"), "stored");
  }),
  rule("an unsupported result rejects the call and leaves nothing behind", async (stage) => {
    const cache = stage.cache();
    await assert.rejects(stage.until(cache.getOrSet("key", () => ({ run: () => 1 }))), CodecError);
    await assertAbsent(cache, "key");
    assert.equal(await stage.until(cache.getOrSet("key", () => 1)), 1);
  }),
  rule("forceLoad reloads while the old value stays readable", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", "old");
    const held = new HeldLoad<string>();
    const call = cache.getOrSet("key", held.load, { forceLoad: true });
    await stage.until(held.started);
    assert.equal(await cache.get("key"), "old");
    assert.equal(await cache.exists("key"), true);
    assert.equal(await stage.until(cache.getOrSet("key", () => "other")), "old");
    held.finish("new");
    assert.equal(await stage.until(call), "new");
    assert.equal(await cache.get("key"), "new");
  }),
  rule("a forced load that fails leaves the old value", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", "old", { tags: ["tag"] });
    const held = new HeldLoad<string>();
    const call = cache.getOrSet("key", held.load, { forceLoad: true });
    await stage.until(held.started);
    held.fail(new Error("the load failed"));
    await assert.rejects(stage.until(call), { message: "the load failed" });
    assert.equal(await cache.get("key"), "old");
    await cache.invalidateTags("tag");
    await assertAbsent(cache, "key");
  }),
  rule("a value that expires while it is being reloaded is not returned", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", "old", { ttl: (4 * stage.shortMs) / 1000 });
    const held = new HeldLoad<string>();
    const call = cache.getOrSet("key", held.load, { forceLoad: true });
    await stage.until(held.started);
    await stage.pass(4 * stage.shortMs);
    assert.equal(await cache.get("key"), undefined);
    assert.equal(await cache.exists("key"), false);
    assert.equal((await cache.getMany(["key"])).size, 0);
    held.finish("new");
    assert.equal(await stage.until(call), "new");
    assert.equal(await cache.get("key"), "new");
  }),
];

export const cacheLoads: ContractGroup = { name: "cache loads", cases: () => [...flights, ...options] };
