// Contract cases: stale values are returned only where the caller allows it.
import assert from "node:assert/strict";
import type { GetOrSetOptions, LoadContext } from "../../core/options.ts";
import type { XCache } from "../../xcache.ts";
import { assertAbsent } from "./cache-operation.ts";
import { HeldLoad } from "./held-load.ts";
import { type ContractGroup, rule, type Stage } from "./stage.ts";

const failing = (): never => {
  throw new Error("the load failed");
};

/**
 * Loads "old" with a short ttl and these stale windows, then lets the ttl pass. Returns options with a long ttl: what
 * replaces the stale value must not expire before a slow machine has looked at it.
 */
async function expired(stage: Stage, cache: XCache, options: GetOrSetOptions): Promise<GetOrSetOptions> {
  const all = { ttl: stage.shortMs / 1000, tags: ["tag"], ...options };
  assert.equal(await stage.until(cache.getOrSet("key", () => "old", all)), "old");
  await stage.pass(stage.shortMs);
  return { ...all, ttl: 3600 };
}

const cases = [
  rule("an expired entry is absent for every operation except getOrSet", async (stage) => {
    const cache = stage.cache();
    await expired(stage, cache, { staleIfError: 3600 });
    await assertAbsent(cache, "key");
  }),
  rule("stale-if-error: within the window a failed load returns the stale value", async (stage) => {
    const cache = stage.cache();
    const options = await expired(stage, cache, { staleIfError: 3600 });
    assert.equal(await stage.until(cache.getOrSet("key", failing, options)), "old");
    assert.equal(await stage.until(cache.getOrSet("key", failing, options)), "old");
    assert.equal(await cache.get("key"), undefined);
    await assert.rejects(stage.until(cache.getOrSet("key", failing, { ...options, staleIfError: 0 })));
    // Others get the stale value for a while: the failing load is not tried again by every call.
    assert.equal(await stage.until(cache.getOrSet("key", () => "new", options)), "old");
    const forced = { ...options, forceLoad: true };
    assert.equal(await stage.until(cache.getOrSet("key", () => "new", forced)), "new");
    assert.equal(await cache.get("key"), "new");
  }),
  rule("stale-if-error: beyond the window the error reaches the caller", async (stage) => {
    const cache = stage.cache();
    const options = await expired(stage, cache, { staleIfError: stage.shortMs / 1000 });
    await stage.pass(2 * stage.shortMs);
    await assert.rejects(stage.until(cache.getOrSet("key", failing, options)), {
      message: "the load failed",
    });
  }),
  rule(
    "stale-while-revalidate: the stale value is returned immediately while one load refreshes it",
    async (stage) => {
      const cache = stage.cache();
      const options = await expired(stage, cache, { staleWhileRevalidate: 3600 });
      const held = new HeldLoad<string>();
      for (let call = 0; call < 10; call++) {
        assert.equal(await stage.until(cache.getOrSet("key", held.load, options)), "old");
      }
      await stage.until(held.started);
      held.finish("new");
      await stage.eventually("the refreshed value", async () => (await cache.get("key")) === "new", 2_000);
      assert.equal(held.runs, 1);
      assert.equal(await stage.until(cache.getOrSet("key", held.load, options)), "new");
    },
  ),
  rule("stale-while-revalidate: a failed refresh keeps the stale value for the next call", async (stage) => {
    const cache = stage.cache();
    const options = await expired(stage, cache, { staleWhileRevalidate: 3600 });
    const held = new HeldLoad<string>();
    assert.equal(await stage.until(cache.getOrSet("key", held.load, options)), "old");
    await stage.until(held.started);
    held.fail(new Error("the load failed"));
    await stage.advance(10);
    assert.equal(await stage.until(cache.getOrSet("key", failing, options)), "old");
    const forced = { ...options, forceLoad: true };
    assert.equal(await stage.until(cache.getOrSet("key", () => "new", forced)), "new");
    assert.equal(await cache.get("key"), "new");
  }),
  rule("stale-while-revalidate: beyond the window callers wait for the load", async (stage) => {
    const cache = stage.cache();
    const options = await expired(stage, cache, { staleWhileRevalidate: stage.shortMs / 1000 });
    await stage.pass(2 * stage.shortMs);
    assert.equal(await stage.until(cache.getOrSet("key", () => "new", options)), "new");
  }),
  rule(
    "stale-while-revalidate: an invalidation during the refresh discards the stale value and the new one",
    async (stage) => {
      const cache = stage.cache();
      const options = await expired(stage, cache, { staleWhileRevalidate: 3600, staleIfError: 3600 });
      const held = new HeldLoad<string>();
      assert.equal(await stage.until(cache.getOrSet("key", held.load, options)), "old");
      await stage.until(held.started);
      await cache.invalidateTags("tag");
      await assert.rejects(stage.until(cache.getOrSet("key", failing, options)), {
        message: "the load failed",
      });
      held.finish("overtaken");
      await stage.advance(10);
      await assertAbsent(cache, "key");
    },
  ),
  rule(
    "softTimeout: a slow load is answered with the stale value, and stored when it finishes",
    async (stage) => {
      const cache = stage.cache();
      const options = await expired(stage, cache, { staleIfError: 3600 });
      const held = new HeldLoad<string>();
      assert.equal(
        await stage.until(cache.getOrSet("key", held.load, { ...options, softTimeout: 0.05 })),
        "old",
      );
      held.finish("new");
      await stage.eventually("the late value", async () => (await cache.get("key")) === "new", 2_000);
      assert.equal(held.runs, 1);
    },
  ),
  rule("a load receives the expired value", async (stage) => {
    const cache = stage.cache();
    const options = await expired(stage, cache, { staleIfError: 3600 });
    const refresh = (context: LoadContext<string>): string => `${context.stale} and new`;
    assert.equal(await stage.until(cache.getOrSet("key", refresh, options)), "old and new");
    assert.equal(await cache.get("key"), "old and new");
  }),
  rule("set and delete discard an expired value as well", async (stage) => {
    const cache = stage.cache();
    const options = await expired(stage, cache, { staleIfError: 3600 });
    assert.equal(await cache.delete("key"), 0);
    await assert.rejects(stage.until(cache.getOrSet("key", failing, options)), {
      message: "the load failed",
    });
    const again = await expired(stage, cache, { staleIfError: 3600 });
    await cache.set("key", "set", { ttl: stage.shortMs / 1000 });
    await stage.pass(stage.shortMs);
    await assert.rejects(stage.until(cache.getOrSet("key", failing, again)), { message: "the load failed" });
  }),
];

export const cacheStaleness: ContractGroup = { name: "cache stale values", cases: () => cases };
