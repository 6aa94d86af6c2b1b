// Contract cases: what other processes leave under an entry's key, and what a cache makes of it.
import assert from "node:assert/strict";
import { spelling } from "../../core/keys.ts";
import type { Lease, Token } from "../../core/record.ts";
import type { XCache } from "../../xcache.ts";
import { sampleLease, sampleStamp } from "./sample.ts";
import { type ContractGroup, rule, type Stage } from "./stage.ts";

/** The stamps a lease of the default namespace is sealed with just now. */
async function lineageOf(stage: Stage, cache: XCache): Promise<readonly Token[]> {
  await cache.set("seal", 1);
  const stamp = await stage.bare.read(spelling(stage.prefix).namespaceStamp());
  assert.ok(stamp, "a shared store keeps the namespace's stamp as a record");
  return [stamp.version];
}

/** Leaves a lease under "key" as a process would that died while loading. */
async function abandonLease(stage: Stage, parts: Partial<Lease>): Promise<void> {
  const lease = sampleLease(stage.key("key"), { tags: [], ...parts });
  await stage.bare.write({ key: spelling(stage.prefix).entry("key"), record: lease, lifetimeMs: 60_000 });
}

const leases = [
  rule("a lease whose holder died is waited for until it lapses, then taken over", async (stage) => {
    const cache = stage.cache();
    const lineage = await lineageOf(stage, cache);
    const lapses = stage.bare.now() + 2 * stage.shortMs;
    await abandonLease(stage, { lineage, expires: lapses });
    let loadedAt = 0;
    const call = cache.getOrSet("key", () => {
      loadedAt = stage.bare.now();
      return "mine";
    });
    assert.equal(await stage.until(call), "mine");
    assert.ok(
      loadedAt + stage.bare.clockErrorMs() >= lapses - 1,
      `taken over ${lapses - loadedAt} ms too early`,
    );
    assert.equal(await cache.get("key"), "mine");
  }),
  rule("a lease sealed before an invalidation is taken over at once", async (stage) => {
    const cache = stage.cache();
    const lineage = await lineageOf(stage, cache);
    await abandonLease(stage, { lineage, expires: stage.bare.now() + 3_600_000 });
    await cache.clear();
    assert.equal(await stage.until(cache.getOrSet("key", () => "mine")), "mine");
    assert.equal(await cache.get("key"), "mine");
  }),
  rule("a lease alone is no value, and set or delete end it", async (stage) => {
    const cache = stage.cache();
    const lineage = await lineageOf(stage, cache);
    for (const end of [() => cache.set("key", "set"), () => cache.delete("key")]) {
      await abandonLease(stage, { lineage, expires: stage.bare.now() + 3_600_000 });
      assert.equal(await cache.get("key"), undefined);
      assert.equal(await cache.exists("key"), false);
      await end();
      assert.ok(await stage.until(cache.getOrSet("key", () => "mine")));
    }
  }),
  rule("a record that is no entry is no value and is replaced", async (stage) => {
    const cache = stage.cache();
    await lineageOf(stage, cache);
    const key = spelling(stage.prefix).entry("key");
    await stage.bare.write({ key, record: sampleStamp(), lifetimeMs: 60_000 });
    assert.equal(await cache.get("key"), undefined);
    assert.equal(await stage.until(cache.getOrSet("key", () => "mine")), "mine");
    assert.equal(await cache.get("key"), "mine");
  }),
];

export const cacheLeases: ContractGroup = {
  name: "leases of other processes",
  cases: ({ shared }) => (shared ? leases : []),
};
