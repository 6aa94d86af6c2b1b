// Contract cases: namespaces and prefixes are isolated, and no user key reaches the library's own records.
import assert from "node:assert/strict";
import { spelling } from "../../core/keys.ts";
import { assertAbsent, listedKeys } from "./cache-operation.ts";
import { type ContractGroup, rule, type Stage } from "./stage.ts";

/** Keys and names that contain the separators of stored keys. */
const SEPARATORS = [
  "a",
  "a:b",
  "a!b",
  "a/b",
  ":a",
  "!a",
  "/a",
  "a:",
  "!n",
  "!t:tag",
  "!g:0",
  "!x:a",
  "%3a",
  "%",
  "a%2fb",
];

const apart = [
  rule("the same key in two namespaces is two entries", async (stage) => {
    const root = stage.cache();
    const [users, posts] = [root.namespace("users"), root.namespace("posts")];
    await root.set("key", "root");
    await users.set("key", "users");
    await posts.set("key", "posts");
    await users.namespace("deep").set("key", "deep");
    const values = [root, users, posts, users.namespace("deep")].map((cache) => cache.get("key"));
    assert.deepEqual(await Promise.all(values), ["root", "users", "posts", "deep"]);
    assert.equal(await users.delete("key"), 1);
    assert.deepEqual([await root.get("key"), await posts.get("key")], ["root", "posts"]);
  }),
  rule("keys of different namespaces never collide, whatever characters they contain", async (stage) => {
    const root = stage.cache();
    const caches = [
      root,
      ...SEPARATORS.map((name) => root.namespace(name)),
      root.namespace("a").namespace("a"),
    ];
    for (const [at, cache] of caches.entries()) {
      await cache.setMany(SEPARATORS.map((key) => [key, `${at} ${key}`] as const));
    }
    for (const [at, cache] of caches.entries()) {
      const values = await cache.getMany(SEPARATORS);
      for (const key of SEPARATORS) assert.equal(values.get(key), `${at} ${key}`);
    }
  }),
  rule("prefixes that share a beginning are isolated", async (stage) => {
    const names = ["", "2", ":x", "/x", "!t", "!t:x", "%"].map((end) => `${stage.prefix}${end}`);
    const caches = names.map((keyPrefix) => stage.cache({ keyPrefix }));
    for (const [at, cache] of caches.entries())
      await cache.setMany({ x: at, "x:x": at, "t:x": at }, { tags: ["x"] });
    await caches[0]?.clear();
    await caches[1]?.invalidateTags("x");
    for (const [at, cache] of caches.entries())
      assert.equal(await cache.get("x"), at < 2 ? undefined : at, names[at]);
  }),
];

const cleared = [
  rule("clear empties its namespace and the child namespaces, and nothing else", async (stage) => {
    const root = stage.cache();
    const [parent, sibling] = [root.namespace("parent"), root.namespace("parent2")];
    const child = parent.namespace("child");
    const all = [root, parent, sibling, child, child.namespace("grandchild")];
    const fill = async (): Promise<void> => {
      for (const cache of all) await cache.set("key", 1, { tags: ["tag"] });
    };
    const present = (): Promise<boolean[]> => Promise.all(all.map((cache) => cache.exists("key")));
    await fill();
    await parent.clear();
    assert.deepEqual(await present(), [true, false, true, false, false]);
    await fill();
    await child.clear();
    assert.deepEqual(await present(), [true, true, true, false, false]);
    await fill();
    await root.clear();
    assert.deepEqual(await present(), [false, false, false, false, false]);
    await fill();
    assert.deepEqual(await present(), [true, true, true, true, true]);
  }),
  rule("a tag belongs to its namespace", async (stage) => {
    const root = stage.cache();
    const child = root.namespace("child");
    await root.set("key", "root", { tags: ["tag"] });
    await child.set("key", "child", { tags: ["tag"] });
    await child.invalidateTags("tag");
    assert.equal(await root.get("key"), "root");
    await assertAbsent(child, "key");
  }),
  rule("a cleared cache can be used again immediately", async (stage) => {
    const cache = stage.cache();
    for (let round = 0; round < 5; round++) {
      await cache.set("key", round, { tags: ["tag"] });
      assert.equal(await cache.get("key"), round);
      await (round % 2 === 0 ? cache.clear() : cache.invalidateTags("tag"));
      await assertAbsent(cache, "key");
    }
  }),
];

const ownRecords = [
  rule("user keys that look like the library's records do not reach them", async (stage) => {
    const cache = stage.cache();
    const lookalikes = ownNames(stage);
    await cache.set("tagged", 1, { tags: ["tag"] });
    for (const name of lookalikes) await cache.set(name, "user", { tags: ["tag"] });
    assert.equal(await cache.get("tagged"), 1);
    for (const name of lookalikes) assert.equal(await cache.get(name), "user", name);
    await cache.delete(lookalikes);
    assert.equal(await cache.get("tagged"), 1);
    await cache.invalidateTags("tag");
    await assertAbsent(cache, "tagged");
    for (const name of lookalikes) assert.equal(await cache.get(name), undefined, name);
  }),
];

const ownRecordsListed = rule(
  "the library's own records are neither listed nor removed by a pattern",
  async (stage) => {
    const cache = stage.cache();
    await cache.set("key", 1, { tags: ["tag"] });
    await stage.until(
      cache.getOrSet("loaded", (context) => {
        context.setTags(["late"]);
        return 2;
      }),
    );
    await cache.namespace("child").set("below", 1, { tags: ["tag"] });
    assert.deepEqual(await listedKeys(cache), ["key", "loaded"]);
    assert.equal(await cache.invalidatePattern("*"), 2);
    assert.equal(await cache.namespace("child").get("below"), 1);
  },
);

/** The keys of the library's own records as user keys: complete, without the prefix, and truncated. */
function ownNames(stage: Stage): string[] {
  const names = spelling(stage.prefix);
  const whole = [
    names.namespaceStamp(),
    names.tagStamp("tag"),
    names.groupStamp(0),
    names.own("x"),
    names.entry("tagged"),
  ];
  return [...whole, ...whole.map((name) => name.slice(stage.prefix.length)), "!", "!t", "!t:", "!n", "!g"];
}

export const cacheNamespaces: ContractGroup = {
  name: "cache namespaces",
  cases: ({ scan }) => [...apart, ...cleared, ...ownRecords, ...(scan ? [ownRecordsListed] : [])],
};
