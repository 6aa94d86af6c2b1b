// Contract cases: an invalidated entry is absent and never comes back.
import assert from "node:assert/strict";
import { spelling } from "../../core/keys.ts";
import { AWKWARD_NAMES } from "./binary-safety.ts";
import { assertAbsent, listedKeys } from "./cache-operation.ts";
import { type ContractCase, type ContractGroup, rule, type Stage } from "./stage.ts";

const byTag = [
  rule("invalidateTags removes every entry that carries one of the tags, and no other", async (stage) => {
    const cache = stage.cache();
    await cache.set("a", 1, { tags: ["red", "round"] });
    await cache.set("b", 2, { tags: ["red"] });
    await cache.set("c", 3, { tags: ["round", "blue"] });
    await cache.set("d", 4, { tags: ["blue"] });
    await cache.set("e", 5);
    await cache.invalidateTags("red");
    assert.deepEqual([...(await cache.getMany(["a", "b", "c", "d", "e"])).keys()].sort(), ["c", "d", "e"]);
    await cache.invalidateTags(["round", "unknown"]);
    await assertAbsent(cache, "c");
    assert.deepEqual([...(await cache.getMany(["a", "b", "c", "d", "e"])).keys()].sort(), ["d", "e"]);
    await cache.invalidateTags([]);
    assert.equal(await cache.get("d"), 4);
  }),
  rule("tags of any characters are distinct", async (stage) => {
    const cache = stage.cache();
    for (const tag of AWKWARD_NAMES) await cache.set(`key ${tag}`, tag, { tags: [tag] });
    const gone = AWKWARD_NAMES.filter((_, at) => at % 2 === 0);
    await cache.invalidateTags(gone);
    for (const tag of AWKWARD_NAMES) {
      assert.equal(await cache.get(`key ${tag}`), gone.includes(tag) ? undefined : tag, JSON.stringify(tag));
    }
  }),
  rule("an entry stored after an invalidation is not affected by it", async (stage) => {
    const cache = stage.cache();
    await cache.set("old", 1, { tags: ["tag"] });
    await cache.invalidateTags("tag");
    await cache.set("new", 2, { tags: ["tag"] });
    await assertAbsent(cache, "old");
    assert.equal(await cache.get("new"), 2);
    await cache.set("old", 3, { tags: ["tag"] });
    assert.deepEqual([await cache.get("old"), await cache.get("new")], [3, 2]);
  }),
  rule("an invalidated entry is never served stale", async (stage) => {
    const cache = stage.cache();
    const options = {
      ttl: stage.shortMs / 1000,
      tags: ["tag"],
      staleIfError: 3600,
      staleWhileRevalidate: 3600,
    };
    await stage.until(cache.getOrSet("key", () => "old", options));
    await stage.pass(stage.shortMs);
    await cache.invalidateTags("tag");
    const failing = (): never => {
      throw new Error("the load failed");
    };
    await assert.rejects(stage.until(cache.getOrSet("key", failing, options)), {
      message: "the load failed",
    });
  }),
  rule("an entry that outlives others with its tag stays until the tag is invalidated", async (stage) => {
    const cache = stage.cache();
    await cache.set("short", 1, { ttl: stage.shortMs / 1000, tags: ["tag"] });
    await cache.set("ever", 2, { ttl: Number.POSITIVE_INFINITY, tags: ["tag"] });
    await cache.set("short again", 3, { ttl: stage.shortMs / 1000, tags: ["tag"] });
    await stage.pass(4 * stage.shortMs);
    assert.equal(await cache.get("ever"), 2);
    await cache.invalidateTags("tag");
    await assertAbsent(cache, "ever");
    await cache.set("short", 4, { tags: ["tag"] });
    await assertAbsent(cache, "ever");
  }),
];

const byPattern = [
  rule("invalidatePattern removes the matching entries and returns their number", async (stage) => {
    const cache = stage.cache();
    await cache.setMany({ "user:1": 1, "user:2": 2, "user:10": 3, "user:*": 4, other: 5 });
    await cache.set("user:3", 6, { tags: ["dead"] });
    await cache.invalidateTags("dead");
    await cache.namespace("user:").set("user:1", 7);
    assert.equal(await cache.invalidatePattern("user:?"), 3);
    assert.deepEqual(await listedKeys(cache), ["other", "user:10"]);
    assert.equal(await cache.invalidatePattern("user:?"), 0);
    assert.equal(await cache.namespace("user:").get("user:1"), 7);
    assert.equal(await cache.invalidatePattern("*"), 2);
    assert.deepEqual(await listedKeys(cache), []);
  }),
];

/** Removes one of the library's own records as an eviction would. False if the store keeps them elsewhere. */
async function loseStamp(stage: Stage, key: string): Promise<boolean> {
  const lost = await stage.bare.take(key);
  // Only a single-process store may keep its stamps outside its records, where nothing can evict them.
  assert.ok(lost !== undefined || !stage.offers.shared, `the stamp under ${key} is not in the store`);
  return lost !== undefined;
}

const lostStamps: readonly ContractCase[] = (["namespaceStamp", "parentStamp", "tagStamp"] as const).map(
  (which) =>
    rule(`a lost ${which} makes entries dead, and no later one revives them`, async (stage) => {
      const root = stage.cache();
      const cache = root.namespace("child");
      const names = spelling(stage.prefix);
      const child = names.child("child");
      const key = {
        namespaceStamp: child.namespaceStamp(),
        parentStamp: names.namespaceStamp(),
        tagStamp: child.tagStamp("tag"),
      };
      // Two entries: the one read while the stamp is missing may be reclaimed by that read.
      await cache.setMany({ read: 1, unread: 2 }, { ttl: Number.POSITIVE_INFINITY, tags: ["tag"] });
      assert.equal(await cache.get("read"), 1);
      if (!(await loseStamp(stage, key[which]))) return;
      await stage.eventually("the entry is dead", async () => (await cache.get("read")) === undefined);
      await cache.set("new", 3, { tags: ["tag"] });
      assert.equal(await cache.get("new"), 3);
      for (const old of ["read", "unread"]) await assertAbsent(cache, old);
      await cache.set("read", 4, { tags: ["tag"] });
      assert.deepEqual([await cache.get("read"), await cache.get("new")], [4, 3]);
    }),
);

export const cacheInvalidation: ContractGroup = {
  name: "cache invalidation",
  cases: ({ scan }) => [...byTag, ...(scan ? byPattern : []), ...lostStamps],
};
