// Reading many entries at once: one that is damaged costs only itself, and nothing is left behind by a failure.
import { beforeEach, describe, expect, it } from "vitest";
import type { PushChannel } from "../../src/core/backend.ts";
import { Entries } from "../../src/core/entries.ts";
import { EntryReader } from "../../src/core/entry-reader.ts";
import { ConnectionError } from "../../src/core/errors.ts";
import { spelling } from "../../src/core/keys.ts";
import { type NearPage, NearSpace } from "../../src/core/near.ts";
import type { WatchedRead } from "../../src/core/read-watch.ts";
import { RecordReading } from "../../src/core/record-reading.ts";
import { Seals } from "../../src/core/seals.ts";
import { ChaosBackend, cacheWithClock, ManualClock } from "../../src/testing/index.ts";
import { ReferenceStore } from "../support/reference-backend.ts";
import { openSharedStore } from "../support/shared-store.ts";

let clock: ManualClock;
let store: ReferenceStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new ReferenceStore(clock, { push: "at once" });
});

describe("a damaged record among many", () => {
  it("is absent and told of, and the others are there", async () => {
    const cache = cacheWithClock({ backend: store.client(), keyPrefix: "app" }, clock);
    await cache.setMany({ a: 1, b: 2, c: 3 });
    store.put("app:b", { frame: Uint8Array.of(1, 2, 3), expires: Number.POSITIVE_INFINITY });
    const told: string[] = [];
    cache.on("error", ({ error }) => told.push((error as Error & { code: string }).code));
    expect(await cache.getMany(["a", "b", "c"])).toEqual(
      new Map([
        ["a", 1],
        ["c", 3],
      ]),
    );
    expect(told).toEqual(["FRAME_INVALID"]);
    await cache.disconnect();
  });
});

describe("reads that were begun for the near tier", () => {
  /** Counts the reads it watches. */
  class CountedNear extends NearSpace {
    underWay = 0;
    override begin(spelled: string): WatchedRead {
      this.underWay++;
      return super.begin(spelled);
    }
    override end(read: WatchedRead): void {
      this.underWay--;
      super.end(read);
    }
  }

  it("are over when the store fails, for one key and for many", async () => {
    const chaos = new ChaosBackend(store.client(), { clock });
    const shared = openSharedStore(chaos, clock, 100);
    const names = spelling("app");
    const seals = new Seals(shared.stamps, names, []);
    const push: Required<PushChannel> = {
      epoch: () => 1,
      isTrusted: () => true,
      onChange: () => () => {},
    };
    const page: NearPage = {
      peek: () => undefined,
      declines: () => false,
      keep: () => true,
      drop() {},
      keys: () => [],
      clear() {},
    };
    const near = new CountedNear({
      page,
      push,
      backend: shared.backend,
      clock,
      checks: shared.stamps.checks,
    });
    const entries = new Entries(shared, names, seals);
    const reader = new EntryReader(new RecordReading(shared, names, seals, entries, near));
    await shared.connect();

    chaos.fail("read", new ConnectionError("gone"));
    chaos.fail("readMany", new ConnectionError("gone"));
    await expect(new Promise((answered, failed) => reader.get("a", { answered, failed }))).rejects.toThrow(
      "gone",
    );
    await expect(reader.getMany(["a", "b"])).rejects.toThrow("gone");
    expect(near.underWay).toBe(0);
    await shared.disconnect();
  });
});
