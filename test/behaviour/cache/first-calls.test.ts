// Random programs of calls made in one turn on a cache that was just opened: they end as they do once the code is loaded.
import { AsyncLocalStorage } from "node:async_hooks";
import { afterAll, describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { sharedCode } from "../../../src/cache/deferred-store.ts";
import * as openShared from "../../../src/cache/open-shared.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { Backend } from "../../../src/core/backend.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { XCache } from "../../../src/xcache.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";

const PROGRAMS = 60;
const KEYS = ["a", "b", "c"];
const EVENTS = ["hit", "miss", "set", "delete", "invalidate"] as const;

type Draw = (below: number) => number;

function drawing(seed: number): Draw {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const picked = <T>(draw: Draw, choices: readonly T[]): T => choices[draw(choices.length)] as T;

function drawnConfig(draw: Draw): CacheConfig {
  const secret = { a: "a secret of one test" };
  const backends: readonly (() => Backend)[] = [
    () => new ChaosBackend(new MemoryBackend()),
    () => new ReferenceStore(systemClock).client(),
    () => new ReferenceStore(systemClock, { push: "at once" }).client(),
  ];
  return {
    backend: picked(draw, backends)(),
    nearCache: picked(draw, [false, true, { values: "frozen" }]),
    encryption: picked(draw, [false, false, { keys: secret, hideKeys: "a" }, { keys: () => secret }]),
  };
}

async function listed(cache: XCache): Promise<readonly string[]> {
  const keys = new Set<string>();
  for await (const key of cache.keys()) keys.add(key);
  return [...keys].sort();
}

/** One call; what it was given changes as soon as it has returned. */
function call(draw: Draw, cache: XCache): Promise<unknown> {
  const [key, other] = [picked(draw, KEYS), picked(draw, KEYS)];
  const value = { n: draw(100), list: [draw(5)] };
  const keys = [key, other];
  const entries: [string, unknown][] = keys.map((each) => [each, value]);
  const tags = [picked(draw, ["t", "u"])];
  const options = draw(2) === 0 ? undefined : { tags };
  const calls: readonly (() => Promise<unknown>)[] = [
    () => cache.set(key, value, options),
    () => cache.get(key),
    () => cache.delete(keys),
    () => cache.getOrSet(key, async () => ({ loaded: key }), options),
    () => cache.setMany(entries, options),
    async () => [...(await cache.getMany(keys))],
    () => cache.invalidateTags(tags),
    () => cache.invalidatePattern(`${key}*`),
    () => cache.clear(),
    () => cache.exists(key),
    () => cache.tags(key),
    () => listed(cache),
  ];
  const answer = picked(draw, calls)();
  value.n = -1;
  value.list.push(-1);
  keys.length = 0;
  entries.length = 0;
  return answer;
}

async function outcome(seed: number, isLoaded: boolean): Promise<unknown> {
  sharedCode.loaded = isLoaded ? openShared : undefined;
  const draw = drawing(seed);
  const config = drawnConfig(draw);
  const roots = [new XCache(config), new XCache(config)];
  const caches = [...roots, ...roots.map((root) => root.namespace("sub"))];
  const caller = new AsyncLocalStorage<number>();
  const events: string[] = [];
  for (const cache of caches)
    for (const event of EVENTS)
      cache.on(event, (detail) =>
        events.push(`${event} ${JSON.stringify(detail)} in call ${caller.getStore()}`),
      );
  const count = 3 + draw(10);
  const calls = Array.from({ length: count }, (_, at) =>
    caller.run(at, () => call(draw, picked(draw, caches))),
  );
  const answers = await Promise.all(calls);
  const left = await Promise.all(caches.map(async (cache) => [...(await cache.getMany(KEYS))].sort()));
  await Promise.all(roots.map((root) => root.disconnect()));
  return { answers, left, events: events.sort() };
}

describe("calls made in the turn in which the first cache is opened", () => {
  afterAll(() => {
    sharedCode.loaded = openShared;
  });

  it.each(Array.from({ length: PROGRAMS }, (_, at) => at + 1))(
    "end as those of a later cache do (program %i)",
    async (seed) => {
      expect(await outcome(seed, false)).toEqual(await outcome(seed, true));
    },
  );
});
