// Contract cases: how a cache handles leases and foreign records that other processes left under an entry's key.
import assert from "node:assert/strict";
import { spelling } from "../../core/keys.ts";
import type { Lease, Token } from "../../core/record.ts";
import type { XCache } from "../../xcache.ts";
import { sampleLease, sampleStamp } from "./sample.ts";
import { type ContractGroup, rule, type Stage } from "./stage.ts";

/** The current namespace stamps, as a new lease in the default namespace carries them. */
async function namespaceStampsOf(stage: Stage, cache: XCache): Promise<readonly Token[]> {
  await cache.set("stamped", 1);
  const stamp = await stage.bare.read(spelling(stage.prefix).namespaceStamp());
  assert.ok(stamp, "a shared store keeps the namespace's stamp as a record");
  return [stamp.version];
}

/** Leaves a lease under "key", as a process that died while loading would. */
async function abandonLease(stage: Stage, parts: Partial<Lease>): Promise<void> {
  const lease = sampleLease(stage.key("key"), { tags: [], ...parts });
  await stage.bare.write({ key: spelling(stage.prefix).entry("key"), record: lease, lifetimeMs: 60_000 });
}

const leases = [
  rule("a dead holder's lease is honoured until it expires, then taken over", async (stage) => {
    const cache = stage.cache();
    const namespaceStamps = await namespaceStampsOf(stage, cache);
    const lapses = stage.bare.now() + 2 * stage.shortMs;
    await abandonLease(stage, { namespaceStamps, expires: lapses });
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
  rule("a lease from before an invalidation is taken over immediately", async (stage) => {
    const cache = stage.cache();
    const namespaceStamps = await namespaceStampsOf(stage, cache);
    await abandonLease(stage, { namespaceStamps, expires: stage.bare.now() + 3_600_000 });
    await cache.clear();
    assert.equal(await stage.until(cache.getOrSet("key", () => "mine")), "mine");
    assert.equal(await cache.get("key"), "mine");
  }),
  rule("a lease without an entry is not a value, and set or delete end it", async (stage) => {
    const cache = stage.cache();
    const namespaceStamps = await namespaceStampsOf(stage, cache);
    for (const end of [() => cache.set("key", "set"), () => cache.delete("key")]) {
      await abandonLease(stage, { namespaceStamps, expires: stage.bare.now() + 3_600_000 });
      assert.equal(await cache.get("key"), undefined);
      assert.equal(await cache.exists("key"), false);
      await end();
      assert.ok(await stage.until(cache.getOrSet("key", () => "mine")));
    }
  }),
  rule("a record that is not an entry counts as absent and is replaced", async (stage) => {
    const cache = stage.cache();
    await namespaceStampsOf(stage, cache);
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
