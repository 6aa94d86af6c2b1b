// The parts of a feed that need no server: snapshots, positions, messages and heartbeats.
import { describe, expect, test } from "vitest";
import { Beats } from "../../../src/db/feed/beats.ts";
import type { RecordStore } from "../../../src/db/feed/feed-options.ts";
import { FeedCounts } from "../../../src/db/feed/feed-status.ts";
import { Gate } from "../../../src/db/feed/gate.ts";
import { Liveness } from "../../../src/db/feed/liveness.ts";
import { decodeMessage, endOfRecords, lsnOf, lsnText, statusUpdate } from "../../../src/db/feed/pgoutput.ts";
import { TransactionTags } from "../../../src/db/feed/transaction-tags.ts";
import { XidSnapshot } from "../../../src/db/feed/xid-snapshot.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";

describe("a snapshot", () => {
  test("sees what is over and below its end", () => {
    const snapshot = new XidSnapshot("10:20:12,15");
    expect([9, 11, 12, 15, 19, 20, 21].map((xid) => snapshot.sees(xid))).toEqual([
      true,
      true,
      false,
      false,
      true,
      false,
      false,
    ]);
  });

  test("takes 32-bit ids for the nearest ones, before and after they wrap around", () => {
    const wrapped = new XidSnapshot("4294967300:4294967310:");
    expect(wrapped.sees(4_294_967_290)).toBe(true);
    expect(wrapped.sees(9)).toBe(true);
    expect(wrapped.sees(14)).toBe(false);
    expect(new XidSnapshot("4294967290:4294967295:").sees(3)).toBe(false);
  });

  test("covers another one if it sees all that the other sees", () => {
    const slot = new XidSnapshot("10:20:12");
    expect(new XidSnapshot("12:20:12").covers(slot)).toBe(true);
    expect(new XidSnapshot("15:20:15").covers(slot)).toBe(false);
    expect(new XidSnapshot("10:18:12").covers(slot)).toBe(false);
    expect(new XidSnapshot("20:25:").covers(slot)).toBe(true);
  });
});

describe("a position", () => {
  test("is read and written as PostgreSQL does", () => {
    expect(lsnOf("16/B374D848")).toBe(0x16b374d848n);
    expect(lsnText(0x16b374d848n)).toBe("16/B374D848");
  });

  test("behind a page's header is the end of the page before", () => {
    expect(endOfRecords(lsnOf("0/2000018"), 8192n)).toBe(lsnOf("0/2000000"));
    expect(endOfRecords(lsnOf("0/3000028"), 8192n)).toBe(lsnOf("0/3000000"));
    expect(endOfRecords(lsnOf("0/2000020"), 8192n)).toBe(lsnOf("0/2000020"));
  });
});

describe("a message of the stream", () => {
  test("that is cut off is an error, not a change", () => {
    expect(() => decodeMessage(Buffer.from("kshort"))).toThrow(RangeError);
    const cut = Buffer.concat([
      Buffer.from("w"),
      Buffer.alloc(24),
      Buffer.from("I\0\0\0\x01N\0\x01t\0\0\0\x09abc"),
    ]);
    expect(() => decodeMessage(cut)).toThrow("cut off");
  });

  test("of an unknown kind is ignored", () => {
    expect(decodeMessage(Buffer.from("x"))).toEqual({ kind: "other" });
  });

  test("to the server carries the position three times", () => {
    const bytes = statusUpdate(0x102n, 946_684_800_000, true);
    expect(bytes).toHaveLength(34);
    expect([1, 9, 17].map((at) => bytes.readBigUInt64BE(at))).toEqual([0x102n, 0x102n, 0x102n]);
    expect(bytes.readBigInt64BE(25)).toBe(0n);
    expect(bytes[33]).toBe(1);
  });
});

describe("the gate", () => {
  const users = [{ name: "users", key: [0] }];
  const transaction = (xid: number, rows = 1): TransactionTags => {
    const made = new TransactionTags(xid, true);
    for (let row = 0; row < rows; row++) made.change(users, undefined, [`${xid}-${row}`]);
    return made;
  };

  test("lets a transaction through when the snapshot sees it, whatever waits before it", () => {
    const gate = new Gate<XidSnapshot>((snapshot, { xid }) => snapshot.sees(xid));
    const [slow, fast] = [transaction(11), transaction(12)];
    gate.add(slow);
    gate.add(fast);
    expect(gate.visible(new XidSnapshot("11:20:11"))).toEqual([fast]);
    gate.done([fast]);
    expect(gate.oldest).toBe(slow);
  });

  test("keeps the tables of waiting transactions only, once their rows are too many", () => {
    const gate = new Gate<XidSnapshot>((snapshot, { xid }) => snapshot.sees(xid));
    const waiting = Array.from({ length: 101 }, (_, at) => transaction(at, 1_000));
    for (const each of waiting) gate.add(each);
    expect(waiting[0]?.tags()).toEqual(["table:users", "rows:users"]);
  });
});

describe("a follower", () => {
  class Store implements RecordStore {
    readonly values = new Map<string, unknown>();
    isDown = false;
    async get<T>(key: string): Promise<T | undefined> {
      return this.values.get(key) as T | undefined;
    }
    async set(key: string, value: unknown): Promise<void> {
      if (this.isDown) throw new Error("down");
      this.values.set(key, value);
    }
    async getOrSet<T>(key: string, load: (context: never) => T | Promise<T>): Promise<T> {
      if (!this.values.has(key)) this.values.set(key, await load(undefined as never));
      return this.values.get(key) as T;
    }
  }

  test("believes a beat as of a reading from before the beat before it", async () => {
    const [store, clock] = [new Store(), new ManualClock()];
    const [leader, follower] = [new Beats(store, "f", clock), new Beats(store, "f", clock)];
    const cache = await leader.identity();
    expect(await follower.identity()).toBe(cache);
    leader.begin();
    await leader.send(cache);
    const first = clock.now();
    expect(await follower.receive()).toBeUndefined();
    await clock.advance(10);
    await leader.send(cache);
    // The proof of the second beat may have begun before the first reading.
    expect(await follower.receive()).toBeUndefined();
    await clock.advance(10);
    await leader.send(cache);
    expect(await follower.receive()).toBe(first);
  });

  test("begins again with another leader, and after a beat that was not confirmed", async () => {
    const [store, clock] = [new Store(), new ManualClock()];
    const [leader, follower] = [new Beats(store, "f", clock), new Beats(store, "f", clock)];
    const cache = await leader.identity();
    leader.begin();
    for (let beat = 0; beat < 2; beat++) {
      await leader.send(cache);
      await follower.receive();
    }
    store.isDown = true;
    await leader.send(cache);
    store.isDown = false;
    await leader.send(cache);
    await leader.send(cache);
    expect(await follower.receive()).toBeUndefined();
  });

  test("finds out that the cache has another identity", async () => {
    const [store, clock] = [new Store(), new ManualClock()];
    const leader = new Beats(store, "f", clock);
    const cache = await leader.identity();
    store.values.clear();
    await new Beats(store, "f", clock).identity();
    expect(await leader.send(cache)).toBe(false);
  });
});

test("a feed is alive for as long after its latest proof as it may be silent", async () => {
  const clock = new ManualClock();
  const liveness = new Liveness(clock, 2_000);
  expect([liveness.isAlive, liveness.silence]).toEqual([false, undefined]);
  liveness.prove(clock.now());
  await clock.advance(2_000);
  expect([liveness.isAlive, liveness.silence]).toEqual([true, 2]);
  await clock.advance(1);
  expect(liveness.isAlive).toBe(false);
});

test("metrics that fail do not stop a feed", () => {
  const fail = (): never => {
    throw new Error("no collector");
  };
  const metrics = { increment: fail, gauge: fail, timing: fail };
  const counts = new FeedCounts({ cache: new XCache({ kvUrl: "memory://" }), metrics });
  counts.gap();
  counts.elected();
  counts.invalidated(2, 0.5);
  counts.alive(true);
  expect(counts).toMatchObject({ gaps: 1, elections: 1, invalidations: 2, lag: 0.5 });
});
