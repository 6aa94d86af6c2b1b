import { describe, expect, test } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import type { StoreRecord } from "../../../src/core/record.ts";

const STAMP: StoreRecord = { kind: "stamp", version: "12345678" } as StoreRecord;
const LIFETIME_MS = 60_000;

async function filled(count: number): Promise<MemoryBackend> {
  const backend = new MemoryBackend();
  const items = Array.from({ length: count }, (_, at) => ({
    key: `${at % 100 === 0 ? "rare" : "common"}:${at}`,
    record: STAMP,
    lifetimeMs: LIFETIME_MS,
  }));
  await backend.writeMany(items);
  return backend;
}

/** How often other tasks ran while the work was done. */
async function turnsDuring<T>(work: () => Promise<T>): Promise<{ turns: number; result: T }> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const result = await work();
  isOver = true;
  return { turns, result };
}

async function keysOf(backend: MemoryBackend, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const batch of backend.scan(prefix)) keys.push(...batch.map(({ key }) => key));
  return keys;
}

describe("a scan and a count of a memory store", () => {
  test.each([
    ["nothing matches", "none", 0],
    ["little matches", "rare:", 100],
    ["all of it matches", "", 10_000],
  ])("yield to other tasks after every thousand keys when %s", async (_, prefix, found) => {
    const backend = await filled(10_000);
    const scan = await turnsDuring(() => keysOf(backend, prefix));
    expect(scan.result).toHaveLength(found);
    expect(scan.turns).toBeGreaterThanOrEqual(9);
    const usage = await turnsDuring(() => backend.usage(prefix));
    expect(usage.result).toMatchObject({ keys: found, approximate: false });
    expect(usage.turns).toBeGreaterThanOrEqual(9);
  });

  test("an aborted scan stops even if nothing matches", async () => {
    const backend = await filled(5_000);
    const stop = new AbortController();
    const scan = backend.scan("none", { signal: stop.signal })[Symbol.asyncIterator]();
    const next = scan.next();
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});
