import { describe, expect, test, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import type { Page } from "../../../src/backends/memory/layout/page.ts";
import { type EntryTags, Table } from "../../../src/backends/memory/table.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { MOST_ENTRIES } from "../../../src/core/backend-options.ts";
import { ConfigError } from "../../../src/core/errors.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { LIVE } from "../../backends/memory/tag-set-sample.ts";

const NEVER = Number.POSITIVE_INFINITY;

describe("maxEntries", () => {
  test("is at most half of what a V8 Map holds, wherever it is set", () => {
    expect(MOST_ENTRIES).toBe(2 ** 23);
    expect(new MemoryBackend({ maxEntries: MOST_ENTRIES }).maxEntries).toBe(MOST_ENTRIES);
    expect(resolveConfig({ nearCache: { maxEntries: MOST_ENTRIES } }).nearCache).toMatchObject({
      maxEntries: MOST_ENTRIES,
    });
    const address = `memory://?max_entries=${MOST_ENTRIES}`;
    expect(resolveConfig({ kvUrl: address }).kvUrl).toBe(address);
  });

  test.each<[string, () => unknown, string]>([
    [
      "the constructor",
      () => new MemoryBackend({ maxEntries: MOST_ENTRIES + 1 }),
      "maxEntries (max_entries in a store address) must be a whole number from 1 to 8388608, got 8388609",
    ],
    [
      "an address",
      () => new XCache({ kvUrl: "memory://?max_entries=99999999" }),
      "kvUrl: the option max_entries must be a whole number from 1 to 8388608, got 99999999",
    ],
    [
      "the environment",
      () => XCache.fromEnv({ XCACHE_KV_URL: "memory://?max_entries=8388609" }),
      "XCACHE_KV_URL: the option max_entries must be a whole number from 1 to 8388608, got 8388609",
    ],
    [
      "the near cache",
      () => new XCache({ kvUrl: "memory://", nearCache: { maxEntries: 2 ** 24 } }),
      "nearCache.maxEntries must be a whole number from 1 to 8388608, got 16777216",
    ],
  ])("beyond that is rejected in %s, which is named", (_, act, message) => {
    expect(act).toThrow(new ConfigError("CONFIG_INVALID", message));
  });
});

describe("a Map that accepts no more keys", () => {
  const clock = new ManualClock();

  /** Makes the page's Map reject the key once, as a full one does. */
  function refuseOnce(page: Page, key: string, put: () => unknown): void {
    const set = Map.prototype.set;
    const full = vi.spyOn(Map.prototype, "set").mockImplementation(function (
      this: Map<unknown, unknown>,
      at,
      held,
    ) {
      if (at === key) throw new RangeError("Map maximum size exceeded");
      return set.call(this, at, held);
    });
    try {
      expect(put).toThrow(RangeError);
    } finally {
      full.mockRestore();
    }
    expect(page.held(key)).toBeUndefined();
  }

  test.each<[string, number, EntryTags | undefined]>([
    ["an entry", NEVER, undefined],
    ["an entry that expires soon", clock.now() + 2_000, undefined],
    ["an entry with a seal", NEVER, LIVE],
  ])("leaves nothing of %s behind, and the table keeps working", (_, expires, tagSet) => {
    const table = new Table<EntryTags>({ maxEntries: 3, maxBytes: 1_000, clock });
    const page = table.openPage();
    const put = (key: string): boolean => table.put(page, key, key, tagSet, expires, 0, 10);
    put("a");
    refuseOnce(page, "b", () => put("b"));
    expect([table.size, table.bytes, page.size]).toEqual([1, 10, 1]);
    // A leaked row would take the place of an entry here.
    for (const key of ["b", "c"]) put(key);
    expect([table.size, table.bytes, [...page.keys()]]).toEqual([3, 30, ["a", "b", "c"]]);
    for (let n = 0; n < 20; n++) refuseOnce(page, "x", () => put("x"));
    for (const key of ["d", "e", "f", "g"]) put(key);
    expect([table.size, table.bytes, page.size]).toEqual([3, 30, 3]);
    for (const key of page.keys()) expect(table.find(page, key)?.value).toBe(key);
    table.clear(page);
    while (!table.turn(100));
    expect([table.size, table.bytes]).toEqual([0, 0]);
  });
});
