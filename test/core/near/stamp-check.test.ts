// A near-tier entry is bound to the stamps it was stored under, whatever happens between reading it and reading them.
import { beforeEach, expect, it } from "vitest";
import type { PushChannel } from "../../../src/core/backend.ts";
import { ChaosBackend, cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";

let clock: ManualClock;
let cache: XCache;
let other: XCache;
/** How long the next reads of stamps take, half of it on the way back. */
let delays: number[];

beforeEach(() => {
  clock = new ManualClock();
  delays = [];
  const store = new ReferenceStore(clock, { push: "at once" });
  const open = (nearCache: boolean): XCache => {
    const chaos = new ChaosBackend(store.client(), { clock });
    Object.assign(chaos.push as PushChannel, { isTrusted: () => true });
    if (nearCache) chaos.delay((operation) => (operation === "readMany" ? (delays.shift() ?? 0) : 0));
    return cacheWithClock({ backend: chaos, keyPrefix: "app", nearCache }, clock);
  };
  cache = open(true);
  other = open(false);
});

it("an entry read before clear() and checked against an earlier stamp is not served afterwards", async () => {
  await other.set("k", "old");
  delays = [100];
  const early = cache.get("k");
  await clock.advance(60);
  await cache.clear();
  await clock.advance(40);
  await early;
  expect(await cache.get("k")).toBeUndefined();
});

it("an entry checked against a tag's stamp from before its invalidation is not kept under the next one", async () => {
  await other.set("k", "old", { tags: ["a", "b"] });
  delays = [100];
  const early = cache.get("k");
  await clock.advance(60);
  await cache.invalidateTags("a");
  await cache.set("z", 1, { tags: ["a"] });
  expect(await cache.get("z")).toBe(1);
  await clock.advance(40);
  await early;
  expect(await cache.get("k")).toBeUndefined();
});
