// The figures of a fleet of real processes on one store: they add up exactly, and are kept for the configured time.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import type { FleetStats } from "../../../src/core/stats.ts";
import { XCache } from "../../../src/xcache.ts";
import { OwnProcess } from "../../support/own-process.ts";
import { startRedis } from "../../support/redis.ts";
import { runFolder } from "../../support/run-folder.ts";
import { until } from "../../support/until.ts";

const DAY_MS = 86_400_000;
/** Longer than a test takes. */
const MINUTE_MS = 60_000;

/**
 * A process that uses the cache on command: `set`, `hits` and `misses` at first, then one of `add` (ten seconds have
 * passed), `ask` and `leave`. It answers when that is done.
 */
const SCRIPT = `
import { cacheWithClock } from "./testing/index.js";

const due = new Set();
const after = (delayMs, run) => {
  if (delayMs < 10_000) return systemClock.after(delayMs, run);
  due.add(run);
  return { cancel: () => due.delete(run) };
};
const cache = cacheWithClock({ ...settings.config, operationTimeout: 5 }, { ...systemClock, after });
const order = await nextMessage();
await cache.set(order.key, "value");
for (let hit = 0; hit < order.hits; hit++) await cache.get(order.key);
for (let miss = 0; miss < order.misses; miss++) await cache.get("absent");
say("used");
for (;;) {
  const { what } = await nextMessage();
  if (what === "leave") break;
  if (what === "add") {
    const runs = [...due];
    due.clear();
    for (const run of runs) run();
  }
  // Its answer comes after an addition in flight.
  say(what, { stats: await cache.getStats({ fleet: true, since: 600 }) });
}
await cache.disconnect();
process.disconnect();
`;

interface Use {
  readonly hits: number;
  readonly misses: number;
}

class Fleet {
  readonly #config: { readonly kvUrl: string; readonly metricsRetentionDays: number };
  readonly processes: OwnProcess[] = [];

  constructor(kvUrl: string, metricsRetentionDays: number) {
    this.#config = { kvUrl, metricsRetentionDays };
  }

  /** One process each, which have used the cache like this and have added nothing yet. */
  async use(uses: readonly Use[]): Promise<OwnProcess[]> {
    const started = uses.map(() => new OwnProcess(SCRIPT, { settings: { config: this.#config } }));
    this.processes.push(...started);
    for (const [at, use] of uses.entries()) started[at]?.tell({ key: `key-${at}`, ...use });
    for (const each of started) await each.heard("used");
    return started;
  }

  /** The contents of the store, as seen by a cache that adds nothing. */
  async stored(): Promise<FleetStats> {
    const cache = new XCache({ ...this.#config, enableMetrics: false, operationTimeout: 5 });
    try {
      return await cache.getStats({ fleet: true, since: 600 });
    } finally {
      await cache.disconnect();
    }
  }
}

async function answer(asked: OwnProcess, what: "add" | "ask"): Promise<FleetStats> {
  asked.tell({ what });
  return (await asked.heard(what)).stats as FleetStats;
}

async function leave(leaving: OwnProcess): Promise<void> {
  leaving.tell({ what: "leave" });
  expect(await leaving.ended()).toEqual({ code: 0, signal: null });
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(runFolder(), "fleet-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

let fleet: Fleet;

// A minute that ends meanwhile would separate the processes.
beforeEach(() => until(() => Date.now() % MINUTE_MS < 50_000, { what: "a minute that lasts" }));
afterEach(async () => {
  for (const each of fleet.processes) await each[Symbol.asyncDispose]();
});

describe("three processes on one server", () => {
  it("add up exactly, however each adds, and the rows are kept for metrics_retention_days", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    fleet = new Fleet(server.url, 3);
    const [one, other, third] = (await fleet.use([
      { hits: 5, misses: 2 },
      { hits: 7, misses: 3 },
      { hits: 11, misses: 13 },
    ])) as [OwnProcess, OwnProcess, OwnProcess];
    expect((await fleet.stored()).history).toEqual([]);

    expect(await answer(one, "add")).toMatchObject({ totalHits: 5, totalOperations: 8, processes: 1 });
    await leave(other);
    expect(await fleet.stored()).toMatchObject({ totalHits: 12, totalMisses: 5, processes: 2 });
    // The third has added nothing yet: only it sees its own calls, and once.
    const seen = { totalHits: 23, totalMisses: 18, totalSets: 3, totalOperations: 44, processes: 3 };
    expect(await answer(third, "ask")).toMatchObject(seen);
    expect(await answer(one, "ask")).toMatchObject({ totalHits: 12, processes: 2 });
    await leave(third);
    await leave(one);

    const { history, ...stats } = await fleet.stored();
    // Three more calls: the reads of the figures.
    const all = { ...seen, totalOperations: 44 + 3, hitRate: 23 / 41, totalErrors: 0 };
    expect(stats).toMatchObject(all);
    expect(history).toMatchObject([all]);

    const rows = (await server.cli("--scan", "--pattern", "*minute:*")).split("\n");
    expect(rows).toHaveLength(1);
    const lifeMs = Number(await server.cli("PTTL", rows[0] as string));
    expect(lifeMs).toBeGreaterThan(3 * DAY_MS - MINUTE_MS);
    expect(lifeMs).toBeLessThanOrEqual(3 * DAY_MS);
  });
});

describe("two processes on one folder", () => {
  it("add up exactly, and the rows are kept for metrics_retention_days", async () => {
    const directory = temporaryFolder();
    fleet = new Fleet(`file://${directory}`, 2);
    const [one, other] = (await fleet.use([
      { hits: 3, misses: 1 },
      { hits: 4, misses: 6 },
    ])) as [OwnProcess, OwnProcess];
    expect(await answer(one, "add")).toMatchObject({ totalHits: 3, totalOperations: 5, processes: 1 });
    const all = { totalHits: 7, totalMisses: 7, totalSets: 2, hitRate: 0.5, processes: 2 };
    expect(await answer(other, "ask")).toMatchObject({ ...all, totalOperations: 16 });
    await leave(one);
    await leave(other);
    const { history, ...stats } = await fleet.stored();
    expect(stats).toMatchObject({ ...all, totalOperations: 16 + 2 });
    expect(history).toMatchObject([{ ...all, totalOperations: 16 + 2 }]);
    expect(await lifetimes(directory)).toEqual([2 * DAY_MS]);
  });
});

/** How long each row is kept after it was written, in milliseconds. */
async function lifetimes(directory: string): Promise<number[]> {
  const backend = new DiskBackend({ directory });
  const cache = new XCache({ backend, enableMetrics: false });
  await cache.connect();
  const found: number[] = [];
  for await (const batch of backend.scan("")) {
    for (const { key, record } of batch) {
      if (key.includes("minute:") && record.kind === "entry") found.push(record.expires - record.created);
    }
  }
  await cache.disconnect();
  return found;
}
