// staleIfError backs off: while a source fails, the stale value is served for a while without another load.
import { afterEach, describe, expect, test } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";

const OPTIONS = { ttl: 1, staleIfError: 600, tags: ["t"] };
let clock: ManualClock;
let cache: XCache;
let loads: number;
afterEach(() => cache.disconnect());

/** A cache whose key `k` has just expired. */
async function open(config: CacheConfig): Promise<void> {
  cache = cacheWithClock(config, clock);
  loads = 0;
  await cache.getOrSet("k", () => "old", OPTIONS);
  await clock.advance(2_000);
}

const ask = (load: () => unknown = fail, options: object = OPTIONS): Promise<unknown> =>
  cache.getOrSet(
    "k",
    () => {
      loads++;
      return load();
    },
    options,
  );
const fail = (): never => {
  throw new Error("down");
};

describe.each([
  ["memory", (): CacheConfig => ({ kvUrl: "memory://" })],
  ["a shared store", (): CacheConfig => ({ backend: new ReferenceBackend(new ReferenceStore(clock)) })],
])("on %s", (_name, config) => {
  test("after a failure the stale value is served without a load, for a pause that doubles up to 30 s", async () => {
    clock = new ManualClock();
    await open(config());
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      loads = 0;
      expect(await ask()).toBe("old");
      expect(loads).toBe(1);
      await clock.advance(pauseMs - 1);
      expect([await ask(), await ask()]).toEqual(["old", "old"]);
      expect(loads).toBe(1);
      await clock.advance(1);
    }
    expect(await ask(() => "new")).toBe("new");
  });

  test("a load that succeeds ends the pause, and the next failure begins with the first pause", async () => {
    clock = new ManualClock();
    await open(config());
    await ask();
    await clock.advance(1_000);
    await ask();
    await clock.advance(2_000);
    expect(await ask(() => "new")).toBe("new");
    await clock.advance(2_000);
    await ask();
    await clock.advance(1_000);
    loads = 0;
    await ask();
    expect(loads).toBe(1);
  });

  test.each([
    ["set", () => cache.set("k", "set", { ttl: 0.5 }), "set"],
    ["delete", () => cache.delete("k"), "loaded"],
    ["invalidateTags", () => cache.invalidateTags(["t"]), "loaded"],
    ["clear", () => cache.clear(), "loaded"],
  ])("%s ends the pause", async (_how, change, expected) => {
    clock = new ManualClock();
    await open(config());
    await ask();
    await change();
    expect(await ask(() => "loaded")).toBe(expected);
    await clock.advance(600);
    if (expected === "set") expect(await ask(() => "loaded")).toBe("loaded");
  });

  test("the pause affects neither other keys, nor calls that cannot get the stale value or force a load", async () => {
    clock = new ManualClock();
    await open(config());
    await ask();
    await expect(ask(fail, { staleIfError: 0 })).rejects.toThrow("down");
    expect(await ask(() => "other", { ...OPTIONS, forceLoad: true })).toBe("other");
    expect(await cache.getOrSet("j", () => "j")).toBe("j");
  });

  test("a failed background refresh is not repeated by every call either", async () => {
    clock = new ManualClock();
    await open(config());
    const options = { ttl: 1, staleWhileRevalidate: 600 };
    for (let call = 0; call < 5; call++) {
      expect(await ask(fail, options)).toBe("old");
      await clock.advance(10);
    }
    expect(loads).toBe(1);
  });
});
