// Contract cases: invalid arguments cause a typed error and change nothing.
import assert from "node:assert/strict";
import { XCacheError } from "../../core/errors.ts";
import { MAX_KEY_BYTES } from "../../core/keys.ts";
import type { XCache } from "../../xcache.ts";
import { type ContractGroup, rule } from "./stage.ts";

/** The cache as untyped code sees it. */
type Untyped = Readonly<Record<keyof XCache, (...given: unknown[]) => Promise<unknown>>>;
type Call = (cache: Untyped) => Promise<unknown>;

const TOO_LONG = "k".repeat(MAX_KEY_BYTES + 1);
const WRONG_NAMES: readonly unknown[] = ["", TOO_LONG, undefined, null, 5, {}];
const WRONG_OPTIONS: readonly unknown[] = [
  { ttl: 0 },
  { ttl: -1 },
  { ttl: Number.NaN },
  { ttl: "60" },
  { tags: 5 },
  { tags: ["fine", ""] },
  { tll: 60 },
  null,
  60,
];

const mustNotLoad = (): never => assert.fail("the load of a refused call was run");

const withNames: readonly Call[] = WRONG_NAMES.flatMap((name): Call[] => [
  (cache) => cache.get(name),
  (cache) => cache.getMany(["key", name]),
  (cache) => cache.set(name, "new"),
  (cache) =>
    cache.setMany([
      ["key", "new"],
      [name, "new"],
    ]),
  (cache) => cache.getOrSet(name, mustNotLoad),
  (cache) => cache.exists(name),
  (cache) => cache.ttl(name),
  (cache) => cache.tags(name),
  (cache) => cache.delete(["key", name]),
  (cache) => cache.invalidateTags(["tag", name]),
  (cache) => cache.invalidatePattern(name),
]);

const withOptions: readonly Call[] = WRONG_OPTIONS.flatMap((options): Call[] => [
  (cache) => cache.set("key", "new", options),
  (cache) => cache.setMany({ key: "new", absent: "new" }, options),
  (cache) => cache.getOrSet("absent", mustNotLoad, options),
]);

const others: readonly Call[] = [
  (cache) => cache.getOrSet("absent", "no function"),
  (cache) => cache.delete(undefined),
  (cache) => cache.invalidateTags(undefined),
  (cache) => cache.setMany("key"),
  (cache) => cache.setMany([["key", "new"], ["alone"]]),
  (cache) => cache.getStats({ exact: "yes" }),
];

const refusing = (what: string, calls: readonly Call[]) =>
  rule(`wrong ${what} are rejected with a typed error and change nothing`, async (stage) => {
    const cache = stage.cache();
    await cache.set("key", "old", { ttl: Number.POSITIVE_INFINITY, tags: ["tag"] });
    const untyped = cache as unknown as Untyped;
    for (const call of calls) {
      await assert.rejects(stage.until(call(untyped)), XCacheError, String(call));
    }
    assert.equal(await cache.get("key"), "old");
    assert.deepEqual(await cache.tags("key"), ["tag"]);
    assert.equal(await cache.ttl("key"), Number.POSITIVE_INFINITY);
    assert.equal(await cache.exists("absent"), false);
    await cache.set("key", "new");
    assert.equal(await cache.get("key"), "new");
  });

export const cacheBadInput: ContractGroup = {
  name: "cache bad input",
  cases: () => [
    refusing("keys, tags and patterns", withNames),
    refusing("options", withOptions),
    refusing("arguments of other kinds", others),
  ],
};
