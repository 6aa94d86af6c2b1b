// Reading many entries at once: a damaged one affects only itself, and a failure leaves nothing behind.
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { PushChannel } from "../../../src/core/backend.ts";
import { CodecError, ConnectionError } from "../../../src/core/errors.ts";
import type { WatchedRead } from "../../../src/core/invalidation/inflight-reads.ts";
import { NamespaceStamps } from "../../../src/core/invalidation/namespace-stamps.ts";
import { spelling } from "../../../src/core/keys.ts";
import { type NearPage, PushedNear } from "../../../src/core/near/pushed-near.ts";
import { Guard } from "../../../src/core/resilience/guard.ts";
import { Entries } from "../../../src/core/shared/entries.ts";
import { FoundRead, RecordReading } from "../../../src/core/shared/entry-read.ts";
import { EntryReader } from "../../../src/core/shared/entry-reader.ts";
import { ChaosBackend, cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

let clock: ManualClock;
let store: ReferenceStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new ReferenceStore(clock, { push: "at once" });
});

describe("a damaged record among many", () => {
  it("is absent and reported, and the others are returned", async () => {
    const cache = cacheWithClock({ backend: store.client(), keyPrefix: "app" }, clock);
    await cache.setMany({ a: 1, b: 2, c: 3 });
    store.put("app:b", { frame: Uint8Array.of(1, 2, 3), expires: Number.POSITIVE_INFINITY });
    const reported: string[] = [];
    cache.on("error", ({ error }) => reported.push((error as Error & { code: string }).code));
    expect(await cache.getMany(["a", "b", "c"])).toEqual(
      new Map([
        ["a", 1],
        ["c", 3],
      ]),
    );
    expect(reported).toEqual(["FRAME_INVALID"]);
    await cache.disconnect();
  });
});

describe("reads that were begun for the near tier", () => {
  /** Counts the reads it tracks. */
  class CountedNear extends PushedNear {
    underWay = 0;
    override begin(key: string, spelled: string): WatchedRead | undefined {
      const read = super.begin(key, spelled);
      if (read !== undefined) this.underWay++;
      return read;
    }
    override end(read: WatchedRead): void {
      if (!read.isOver) this.underWay--;
      super.end(read);
    }
  }

  /** A reader over a store that fails as `chaos` is configured to, and its near tier. */
  function opened({ declines = (_key: string): boolean => false } = {}) {
    const chaos = new ChaosBackend(store.client(), { clock });
    const shared = openSharedStore(chaos, clock, 100);
    const names = spelling("app");
    const seals = new NamespaceStamps(shared.stamps, names, []);
    const push: Required<PushChannel> = { epoch: () => 1, isTrusted: () => true, onChange: () => () => {} };
    const kept: string[] = [];
    const page: NearPage = {
      peek: () => undefined,
      holds: () => false,
      declines,
      keep: (key) => kept.push(key) > 0,
      drop() {},
      keys: () => [],
      clear() {},
    };
    const { backend, stamps } = shared;
    const near = new CountedNear({ page, push, backend, clock, checks: stamps.checks });
    const reading = new RecordReading(shared, names, seals, new Entries(shared, names, seals), near);
    return { chaos, shared, near, kept, reading, reader: new EntryReader(reading) };
  }

  const seek = (reader: EntryReader, key: string): Promise<unknown> =>
    new Promise((answered, failed) => reader.seek(key, { answered, failed }));

  it("end when the store fails, for one key and for many", async () => {
    const { chaos, shared, near, reader } = opened();
    await shared.connect();
    chaos.fail("read", new ConnectionError("gone"));
    chaos.fail("readMany", new ConnectionError("gone"));
    await expect(new Promise((answered, failed) => reader.get("a", { answered, failed }))).rejects.toThrow(
      "gone",
    );
    await expect(seek(reader, "a")).rejects.toThrow("gone");
    await expect(reader.getMany(["a", "b"])).rejects.toThrow("gone");
    expect(near.underWay).toBe(0);
    await shared.disconnect();
  });

  it("are not tracked for what it declines: that is read untracked, and not kept", async () => {
    const declined = ["b", "c"];
    const { shared, kept, reader } = opened({ declines: (key) => declined.includes(key) });
    await shared.connect();
    const writer = cacheWithClock({ backend: store.client(), keyPrefix: "app" }, clock);
    await writer.setMany({ a: 1, b: 2, c: 3 });
    const one = vi.spyOn(shared.backend, "readThen");
    for (const key of ["b", "a"]) expect(await seek(reader, key)).toMatchObject({ fresh: true });
    expect(one.mock.calls.map(([key, isWatched]) => [key, isWatched])).toEqual([
      ["app:b", false],
      ["app:a", true],
    ]);
    const many = vi.spyOn(shared.backend, "readManyThen");
    expect((await reader.getMany(["b", "c"])).size).toBe(2);
    expect((await reader.getMany(["a", "b"])).size).toBe(2);
    expect(many.mock.calls.map(([, isWatched]) => isWatched)).toEqual([false, true]);
    expect(kept).toEqual(["a", "a"]);
    await writer.disconnect();
    await shared.disconnect();
  });

  it("end when getOrSet finds a damaged record", async () => {
    const { shared, near, reader } = opened();
    await shared.connect();
    store.put("app:a", { frame: Uint8Array.of(1, 2, 3), expires: Number.POSITIVE_INFINITY });
    expect(await seek(reader, "a")).toBeUndefined();
    expect(near.underWay).toBe(0);
    await shared.disconnect();
  });

  it("do not remove an entry because of a record that was damaged before the call", async () => {
    const { shared, reading } = opened();
    await shared.connect();
    const discarded = vi.spyOn(reading.entries, "discarded");
    const damaged = new CodecError("FRAME_INVALID", "another record is damaged");
    const guard = new Guard(clock, shared.breaker, 1_000, { before: () => Promise.reject(damaged) });
    const failure = new Promise((resolve, failed) => {
      guard.begin(new FoundRead(reading, "getOrSet", "a", { answered: resolve, failed }));
    });
    await expect(failure).rejects.toBe(damaged);
    expect(discarded).not.toHaveBeenCalled();
    await shared.disconnect();
  });
});
