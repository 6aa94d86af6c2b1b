// Contract cases: a load in flight never undoes an invalidation, no matter which process issued it.
import assert from "node:assert/strict";
import type { LoadContext } from "../../core/options.ts";
import type { XCache } from "../../xcache.ts";
import { gate, HeldLoad } from "./held-load.ts";
import { type ContractCase, type ContractGroup, rule } from "./stage.ts";
import type { ContractOffers } from "./subject.ts";

/** One way to invalidate "key", tagged "tag", in the namespace "child". `left` is the value stored afterwards. */
export interface Invalidation {
  readonly name: string;
  readonly left?: string;
  run(root: XCache): Promise<unknown>;
}

const child = (root: XCache): XCache => root.namespace("child");

export function invalidations({ scan }: ContractOffers): readonly Invalidation[] {
  const always: Invalidation[] = [
    { name: "set", left: "set", run: (root) => child(root).set("key", "set") },
    { name: "setMany", left: "set", run: (root) => child(root).setMany({ key: "set", other: 1 }) },
    { name: "delete", run: (root) => child(root).delete(["other", "key"]) },
    { name: "invalidateTags", run: (root) => child(root).invalidateTags(["other", "tag"]) },
    { name: "clear", run: (root) => child(root).clear() },
    { name: "clear of the parent", run: (root) => root.clear() },
  ];
  return scan
    ? [...always, { name: "invalidatePattern", run: (root) => child(root).invalidatePattern("k*") }]
    : always;
}

/** `issuer`: whether the loading cache itself or another process invalidates. */
export function notStored(invalidation: Invalidation, issuer: "itself" | "another process"): ContractCase {
  const by = issuer === "itself" ? "" : " by another process";
  return rule(
    `${invalidation.name}${by} during a load: its value is returned but not stored`,
    async (stage) => {
      const cache = stage.cache();
      const other = issuer === "itself" ? cache : await stage.secondCache();
      const held = new HeldLoad<string>();
      const calls = [1, 2].map(() => child(cache).getOrSet("key", held.load, { tags: ["tag"] }));
      await stage.until(held.started);
      await stage.until(invalidation.run(other));
      held.finish("old");
      assert.deepEqual(await stage.until(Promise.all(calls)), ["old", "old"]);
      await stage.advance(10);
      assert.equal(held.runs, 1);
      for (const reader of [cache, other]) {
        await stage.eventually(
          "the invalidation is seen",
          async () => (await child(reader).get("key")) === invalidation.left,
          issuer === "itself" ? 0 : stage.pushBoundMs,
        );
      }
    },
  );
}

const notJoined = (invalidation: Invalidation): ContractCase =>
  rule(
    `a call after ${invalidation.name} does not join an older load, and is not overwritten by it`,
    async (stage) => {
      const cache = stage.cache();
      const held = new HeldLoad<string>();
      const older = child(cache).getOrSet("key", held.load, { tags: ["tag"] });
      await stage.until(held.started);
      await invalidation.run(cache);
      const wanted = invalidation.left ?? "new";
      const newer = child(cache).getOrSet("key", () => "new", { tags: ["tag"] });
      assert.equal(await stage.until(newer, "the newer call"), wanted);
      held.finish("old");
      assert.equal(await stage.until(older), "old");
      await stage.advance(10);
      assert.equal(await child(cache).get("key"), wanted);
    },
  );

/** A load that names its tag, then waits. */
function lateTagLoad(): {
  readonly held: HeldLoad<string>;
  load(context: LoadContext<string>): Promise<string>;
} {
  const held = new HeldLoad<string>();
  return {
    held,
    load: (context) => {
      context.setTags(["late"]);
      return held.load();
    },
  };
}

const lateTags = [
  rule(
    "if a tag that the load set is invalidated during the load, the value is not stored",
    async (stage) => {
      const cache = stage.cache();
      const { held, load } = lateTagLoad();
      const call = cache.getOrSet("key", load);
      await stage.until(held.started);
      await cache.invalidateTags("late");
      held.finish("old");
      assert.equal(await stage.until(call), "old");
      assert.equal(await cache.get("key"), undefined);
    },
  ),
  rule("if a tag is invalidated before the load sets it, the value is not stored", async (stage) => {
    const cache = stage.cache();
    const [started, go] = [gate<void>(), gate<void>()];
    const call = cache.getOrSet("key", async (context) => {
      started.open();
      await go.promise;
      context.setTags(["late"]);
      return "old";
    });
    await stage.until(started.promise);
    await cache.invalidateTags("late");
    go.open();
    assert.equal(await stage.until(call), "old");
    assert.equal(await cache.get("key"), undefined);
  }),
  rule(
    "a call after a tag's invalidation does not get the value of an older load that set the tag",
    async (stage) => {
      const cache = stage.cache();
      const { held, load } = lateTagLoad();
      const older = cache.getOrSet("key", load);
      await stage.until(held.started);
      await cache.invalidateTags("late");
      const newer = cache.getOrSet("key", () => "new");
      await stage.advance(10);
      held.finish("old");
      assert.equal(await stage.until(newer), "new");
      assert.equal(await stage.until(older), "old");
      assert.equal(await cache.get("key"), "new");
    },
  ),
  rule("a tag set by a load with rest parameters counts as well", async (stage) => {
    const cache = stage.cache();
    const load = (...given: [LoadContext<string>]): string => {
      given[0].setTags(["late"]);
      return "old";
    };
    assert.equal(await stage.until(cache.getOrSet("key", load)), "old");
    await cache.invalidateTags("late");
    assert.equal(await cache.get("key"), undefined);
  }),
];

export const cacheOvertaken: ContractGroup = {
  name: "cache loads overtaken by an invalidation",
  cases: (offers) => [
    ...invalidations(offers).flatMap((invalidation) => [
      notStored(invalidation, "itself"),
      notJoined(invalidation),
    ]),
    ...lateTags,
  ],
};
