// Contract cases: several processes share one store, each with its own cache.
import assert from "node:assert/strict";
import { type Invalidation, invalidations, notStored } from "./cache-overtaken.ts";
import { HeldLoad } from "./held-load.ts";
import { type ContractCase, type ContractGroup, rule } from "./stage.ts";

const together = [
  rule("callers in two processes share one load", async (stage) => {
    const caches = [stage.cache(), await stage.secondCache()];
    const held = new HeldLoad<string>();
    const calls = caches.flatMap((cache) => [1, 2, 3].map(() => cache.getOrSet("key", held.load)));
    await stage.until(held.started);
    await stage.advance(50);
    held.finish("loaded");
    assert.deepEqual(new Set(await stage.until(Promise.all(calls))), new Set(["loaded"]));
    assert.equal(held.runs, 1);
    for (const cache of caches) assert.equal(await cache.get("key"), "loaded");
  }),
  rule("after a load fails in one process, a waiting process runs its own", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    const held = new HeldLoad<string>();
    const failed = first.getOrSet("key", held.load);
    await stage.until(held.started);
    const waiting = second.getOrSet("key", () => "second");
    await stage.advance(20);
    held.fail(new Error("the load failed"));
    await assert.rejects(stage.until(failed), { message: "the load failed" });
    assert.equal(await stage.until(waiting), "second");
    assert.equal(await first.get("key"), "second");
  }),
  rule("after a load stores nothing, a waiting process runs its own", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    const held = new HeldLoad<undefined>();
    const empty = first.getOrSet<string | undefined>("key", held.load);
    await stage.until(held.started);
    const waiting = second.getOrSet("key", () => "second");
    await stage.advance(20);
    held.finish(undefined);
    assert.equal(await stage.until(empty), undefined);
    assert.equal(await stage.until(waiting), "second");
  }),
  rule(
    "a caller that waited for another process during an invalidation stores the value it then loads",
    async (stage) => {
      const [first, second] = [stage.cache(), await stage.secondCache()];
      const held = new HeldLoad<string>();
      const older = first.getOrSet("key", held.load, { tags: ["tag"] });
      await stage.until(held.started);
      let loads = 0;
      const newer = (): Promise<string> =>
        second.getOrSet(
          "key",
          (context) => {
            loads++;
            context.setTags(["late"]);
            return "new";
          },
          { tags: ["tag"] },
        );
      const waiting = newer();
      await stage.advance(20);
      await first.invalidateTags(["tag", "late"]);
      assert.equal(await stage.until(waiting), "new");
      held.finish("old");
      assert.equal(await stage.until(older), "old");
      assert.equal(await stage.until(newer()), "new");
      assert.equal(loads, 1);
    },
  ),
  rule("with lock: false a call neither waits for another process nor overwrites its load", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    const held = new HeldLoad<string>();
    const call = first.getOrSet("key", held.load);
    await stage.until(held.started);
    assert.equal(await stage.until(second.getOrSet("key", () => "mine", { lock: false })), "mine");
    assert.equal(await second.get("key"), undefined);
    held.finish("first");
    assert.equal(await stage.until(call), "first");
    assert.equal(await second.get("key"), "first");
  }),
];

const across = [
  rule("a process sees what another one stores, changes or invalidates", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    const seen = (what: string, value: unknown) =>
      stage.eventually(what, async () => (await second.get("key")) === value);
    await first.set("key", 1, { tags: ["tag"] });
    await seen("a set", 1);
    await first.invalidateTags("tag");
    await seen("invalidated tags", undefined);
    await first.set("key", 2, { tags: ["tag"] });
    await seen("a set after invalidation", 2);
    await first.clear();
    await seen("a clear", undefined);
    await first.set("key", 3);
    await seen("a set after a clear", 3);
    await first.delete("key");
    await seen("a delete", undefined);
  }),
  rule(
    "an entry with stamps that this process does not know yet is verified, not discarded",
    async (stage) => {
      const [first, second] = [stage.cache(), await stage.secondCache()];
      await first.set("key", "old", { tags: ["tag"] });
      assert.equal(await first.get("key"), "old");
      await second.invalidateTags("tag");
      await second.set("key", "tagged", { tags: ["tag"] });
      assert.equal(await first.get("key"), "tagged");
      await second.clear();
      await second.set("key", "cleared", { tags: ["tag"] });
      assert.equal(await first.get("key"), "cleared");
      assert.equal(await second.get("key"), "cleared");
    },
  ),
  rule("if another process invalidates a tag that the load set, the value is not stored", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    const held = new HeldLoad<string>();
    const call = first.getOrSet("key", (context) => {
      context.setTags(["late"]);
      return held.load();
    });
    await stage.until(held.started);
    await second.invalidateTags("late");
    held.finish("old");
    assert.equal(await stage.until(call), "old");
    await stage.eventually("nothing is stored", async () => (await first.get("key")) === undefined);
    assert.equal(await second.get("key"), undefined);
  }),
  rule("clearing a namespace clears its child namespaces in other processes", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    const below = second.namespace("a").namespace("b");
    await below.set("key", 1);
    assert.equal(await below.get("key"), 1);
    await first.clear();
    await stage.eventually("the child is empty", async () => (await below.get("key")) === undefined);
  }),
];

/** How long a process may take to notice that another one invalidated its load. */
const NOTICE_MS = 1_100;

const notJoinedElsewhere = (invalidation: Invalidation): ContractCase =>
  rule(
    `a second after ${invalidation.name} by another process, a call does not join the older load`,
    async (stage) => {
      const [root, other] = [stage.cache(), await stage.secondCache()];
      const cache = root.namespace("child");
      const held = new HeldLoad<string>();
      const older = cache.getOrSet("key", held.load, { tags: ["tag"] });
      await stage.until(held.started);
      await stage.until(invalidation.run(other));
      await stage.advance(NOTICE_MS);
      const wanted = invalidation.left ?? "new";
      const newer = (): Promise<string> => cache.getOrSet("key", () => "new", { tags: ["tag"] });
      assert.equal(await stage.unheld(newer, NOTICE_MS), wanted);
      held.finish("old");
      assert.equal(await stage.until(older), "old");
      await stage.advance(10);
      assert.equal(await cache.get("key"), wanted);
    },
  );

const pushed = [
  rule("a caller that waits for another process is woken by the push, not by polling", async (stage) => {
    const [first, second] = [stage.cache(), await stage.secondCache()];
    for (const key of ["a", "b", "c"]) {
      const held = new HeldLoad<string>();
      const call = first.getOrSet(key, held.load);
      await stage.until(held.started);
      const waiting = second.getOrSet(key, () => "second");
      // By now it polls only a few times per second.
      await stage.advance(1_500);
      const finished = stage.clock.now();
      held.finish("first");
      assert.equal(await stage.until(waiting), "first");
      const took = stage.clock.now() - finished;
      assert.ok(took <= stage.pushBoundMs + 50, `it took ${took} ms`);
      assert.equal(await stage.until(call), "first");
    }
  }),
  ...(["invalidateTags", "clear"] as const).map((way) =>
    rule(
      `once the push of ${way} by another process has come, a call does not join the older load`,
      async (stage) => {
        const [cache, other] = [stage.cache(), await stage.secondCache()];
        // Only stamps that were read are pushed.
        await cache.set("warm", 1, { tags: ["tag"] });
        for (let reads = 0; reads < 2; reads++) assert.equal(await cache.get("warm"), 1);
        await stage.advance(stage.pushBoundMs);
        assert.equal(await cache.get("warm"), 1);
        const held = new HeldLoad<string>();
        const older = cache.getOrSet("key", held.load, { tags: ["tag"] });
        await stage.until(held.started);
        await (way === "clear" ? other.clear() : other.invalidateTags("tag"));
        await stage.advance(stage.pushBoundMs + 20);
        const newer = cache.getOrSet("key", () => "new", { tags: ["tag"] });
        assert.equal(await stage.until(newer, "the newer call"), "new");
        held.finish("old");
        assert.equal(await stage.until(older), "old");
        assert.equal(await cache.get("key"), "new");
      },
    ),
  ),
];

export const cacheProcesses: ContractGroup = {
  name: "caches of several processes",
  cases: (offers) => {
    if (!offers.shared) return [];
    const ways = invalidations(offers);
    return [
      ...together,
      ...across,
      ...(offers.push ? pushed : []),
      ...ways.flatMap((invalidation) => [
        notStored(invalidation, "another process"),
        notJoinedElsewhere(invalidation),
      ]),
    ];
  },
};
