// Changes that have not reached the store are delivered before any entry they concern is read, and until
// then this process does not serve these entries from memory.
import { describe, expect, it } from "vitest";
import { CircuitOpenError, ConnectionError } from "../../../src/core/errors.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { whileOutOfReach } from "../../support/kv/out-of-reach.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const RESET_S = 1;
const UPKEEP_MS = 5_000;
/** At most this many are kept individually. */
const MOST_OWED = 10_000;

const caches = redisCaches({ nearCache: true });
const { open } = caches;

interface Change {
  readonly what: string;
  /** Concerns "k", which carries the tag "t". */
  make(cache: XCache): Promise<unknown>;
  /** Whether other entries stay. */
  readonly keepsOthers: boolean;
}

const CHANGES: readonly Change[] = [
  { what: "delete", make: (cache) => cache.delete("k"), keepsOthers: true },
  { what: "set", make: (cache) => cache.set("k", "new"), keepsOthers: true },
  { what: "invalidateTags", make: (cache) => cache.invalidateTags("t"), keepsOthers: true },
  { what: "clear", make: (cache) => cache.clear(), keepsOthers: false },
  { what: "invalidatePattern", make: (cache) => cache.invalidatePattern("k*"), keepsOthers: false },
];

/** Stores the entries and warms the near tier of each cache. */
async function storeAndWarm(...all: readonly XCache[]): Promise<void> {
  await all[0]!.set("k", "old", { tags: ["t"] });
  await all[0]!.set("other", "kept", { tags: ["u"] });
  for (const cache of all) {
    for (let read = 0; read < 3; read++) {
      expect(await cache.get("k")).toBe("old");
      expect(await cache.get("other")).toBe("kept");
    }
  }
}

const losesSightOf = (cache: XCache, key: string): Promise<unknown> =>
  until(async () => (await cache.get(key)) === undefined, { what: `${key} is gone`, timeoutMs: 3_000 });

/** One process whose circuit is open, and one whose circuit is closed. */
interface Scene {
  readonly clock: ManualClock;
  readonly mine: XCache;
  readonly other: XCache;
}

/** Every command is refused meanwhile, over connections that stay open. */
async function whileBusy(work: () => Promise<void>): Promise<void> {
  const { cli } = caches.server;
  await cli("config", "set", "busy-reply-threshold", "1");
  const script = cli("eval", "while true do end", "0").catch(() => {});
  const isBusy = (): Promise<boolean> =>
    cli("ping").then(
      () => false,
      () => true,
    );
  try {
    await until(isBusy, { what: "the server is busy" });
    await work();
  } finally {
    await cli("script", "kill");
    await script;
  }
}

/** The server works: only this process sends it nothing, and still receives pushes. */
async function withOpenCircuit(): Promise<Scene> {
  const clock = new ManualClock();
  const circuitBreaker = { failureThreshold: 1, resetTimeout: RESET_S };
  const mine = open({ circuitBreaker, operationTimeout: 60 }, clock);
  const other = open();
  await storeAndWarm(mine, other);
  await whileBusy(() => expect(mine.get("nothing")).rejects.toThrow("BUSY"));
  await expect(mine.get("nothing")).rejects.toBeInstanceOf(CircuitOpenError);
  for (const [key, value] of [
    ["k", "old"],
    ["other", "kept"],
  ] as const)
    expect(await mine.get(key), "what is near is served").toBe(value);
  return { clock, mine, other };
}

describe.each(CHANGES)("$what, refused while the circuit is open", ({ make, keepsOthers }) => {
  it("drops the affected entries from the near tier, and is delivered before they are read", async () => {
    const { clock, mine, other } = await withOpenCircuit();
    await expect(make(mine)).rejects.toBeInstanceOf(CircuitOpenError);
    await expect(mine.get("k")).rejects.toBeInstanceOf(CircuitOpenError);
    await expect(mine.getMany(["k"])).rejects.toBeInstanceOf(CircuitOpenError);
    expect(await mine.getOrSet("k", () => "loaded")).toBe("loaded");
    if (keepsOthers) expect(await mine.get("other")).toBe("kept");
    else await expect(mine.get("other")).rejects.toBeInstanceOf(CircuitOpenError);
    expect(await other.get("k"), "not delivered yet").toBe("old");
    await clock.advance(RESET_S * 1_000);
    expect(await mine.get("k")).toBeUndefined();
    expect(await mine.get("other")).toBe(keepsOthers ? "kept" : undefined);
    await losesSightOf(other, "k");
  });

  it("is delivered without a further call", async () => {
    const { clock, mine, other } = await withOpenCircuit();
    await expect(make(mine)).rejects.toBeInstanceOf(CircuitOpenError);
    expect(await other.get("k")).toBe("old");
    await until(() => clock.advance(UPKEEP_MS / 2).then(async () => (await other.get("k")) === undefined), {
      what: "the other process sees it",
      timeoutMs: 4_000,
    });
  });
});

describe.each(CHANGES)("$what, while the server cannot be reached", ({ make, keepsOthers }) => {
  it("is the first command that the server executes for it", async () => {
    const mine = open({ circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 } });
    await storeAndWarm(mine);
    await whileOutOfReach(caches.server, async () => {
      await until(
        () =>
          mine.get("nothing").then(
            () => false,
            (error: unknown) => error instanceof ConnectionError,
          ),
        { what: "the server is missed" },
      );
      await expect(make(mine)).rejects.toBeInstanceOf(ConnectionError);
      await expect(mine.get("k")).rejects.toBeInstanceOf(ConnectionError);
      expect(await mine.getOrSet("k", () => "loaded")).toBe("loaded");
    });
    const first = await until(async () => ({ value: await mine.get("k") }), { what: "the server is back" });
    expect(first.value).toBeUndefined();
    expect(await mine.get("other")).toBe(keepsOthers ? "kept" : undefined);
    expect(await open().get("k")).toBeUndefined();
  });
});

describe("more changes than are kept individually", () => {
  const deletes = async (): Promise<string> => {
    const stats = await caches.server.cli("info", "commandstats");
    return /cmdstat_getdel:calls=(\d+)/.exec(stats)?.[1] ?? "0";
  };

  it("invalidate the namespace and its children instead", async () => {
    const { clock, mine, other } = await withOpenCircuit();
    await other.namespace("child").set("k", "old");
    const many = Array.from({ length: MOST_OWED }, (_, at) => `absent-${at}`);
    await expect(mine.delete(many)).rejects.toBeInstanceOf(CircuitOpenError);
    expect(await mine.get("other"), "as many as are kept").toBe("kept");
    await expect(mine.delete("one more")).rejects.toBeInstanceOf(CircuitOpenError);
    await expect(mine.get("other")).rejects.toBeInstanceOf(CircuitOpenError);
    expect(await other.get("other"), "until it is delivered").toBe("kept");
    const before = await deletes();
    await clock.advance(RESET_S * 1_000);
    expect(await mine.get("other")).toBeUndefined();
    expect(await mine.namespace("child").get("k")).toBeUndefined();
    for (const cache of [other, other.namespace("child")]) await losesSightOf(cache, "k");
    await losesSightOf(other, "other");
    expect(await deletes(), "not one by one").toBe(before);
  });
});
