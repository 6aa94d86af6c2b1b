import { beforeEach, describe, expect, it } from "vitest";
import type { ConnectedServer, KeyedRecord, ReplicationHistory } from "../../../src/core/backend.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { Failover, type FailoverSubject } from "../../../src/core/invalidation/failover.ts";
import type { PendingInvalidation } from "../../../src/core/invalidation/outbox.ts";
import { RecentInvalidations } from "../../../src/core/invalidation/recent-invalidations.ts";
import type { StoreRecord } from "../../../src/core/record.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const NAMESPACE: FailoverSubject = { stampKey: "p!n", noteKey: (anchor) => `p!server${anchor}` };
const SECOND = 1_000;

let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});

/** A server that started a minute ago. */
class Server {
  readonly runId: string;
  readonly records: Map<string, StoreRecord>;
  readonly removed: string[] = [];
  readonly startedAt = clock.now() - 60 * SECOND;
  history: ReplicationHistory | undefined;
  /** What others do after a read before its reply arrives. */
  afterRead: ((key: string) => Promise<void>) | undefined;

  constructor(runId: string, records: Iterable<readonly [string, StoreRecord]> = []) {
    this.runId = runId;
    this.records = new Map(records);
  }

  /** A replica with everything this server has now. */
  replica(runId: string): Server {
    return new Server(runId, this.records);
  }

  get stamp(): string | undefined {
    return this.records.get(NAMESPACE.stampKey)?.version;
  }

  asMet(lastProvenAt: number, anchor = ""): ConnectedServer {
    return {
      anchor,
      runId: this.runId,
      history: this.history,
      startedAt: this.startedAt,
      lastProvenAt,
      owns: () => true,
      records: {
        now: clock.now,
        read: async (key) => {
          const record = this.records.get(key);
          await this.afterRead?.(key);
          return record;
        },
        write: async ({ key, record }: KeyedRecord) => void this.records.set(key, record),
        take: async (key) => {
          this.removed.push(key);
          this.records.delete(key);
          return undefined;
        },
      },
    };
  }
}

class Process {
  readonly recent = new RecentInvalidations(clock);
  readonly continuity = new Failover(clock, this.recent);
  provenAt = 0;

  async meet(server: Server, anchor = ""): Promise<void> {
    await this.continuity.onServer(server.asMet(this.provenAt, anchor), [NAMESPACE]);
    this.provenAt = clock.now();
  }

  /** A change acknowledged by the server it last met. */
  changed(key: string): void {
    const remedy: PendingInvalidation = { key, stampMs: undefined, root: NAMESPACE.stampKey };
    this.recent.add([remedy]);
    this.provenAt = clock.now();
  }

  async confirm(server: Server): Promise<void> {
    await this.continuity.check(NAMESPACE, server.asMet(this.provenAt));
    this.provenAt = clock.now();
  }
}

/** A namespace that has been in use for a while on its first server. */
async function inUse(...processes: readonly Process[]): Promise<Server> {
  const first = new Server("first");
  for (const process of processes) await process.meet(first);
  first.records.set(NAMESPACE.stampKey, { kind: "stamp", version: "original", expires: Infinity });
  return first;
}

describe("a server without a note", () => {
  it("keeps the stamp of a process that begins to use it between the reads of another", async () => {
    const [one, two] = [new Process(), new Process()];
    const server = new Server("first");
    server.afterRead = async (key) => {
      if (key !== NAMESPACE.noteKey("")) return;
      server.afterRead = undefined;
      await one.meet(server);
      server.records.set(NAMESPACE.stampKey, { kind: "stamp", version: "original", expires: Infinity });
    };
    await two.meet(server);
    expect(server.stamp).toBe("original");
  });

  it("gets another stamp if it has one: it may have come back with old data", async () => {
    const server = new Server("first", [
      [NAMESPACE.stampKey, { kind: "stamp", version: "original", expires: Infinity }],
    ]);
    await new Process().meet(server);
    expect(server.stamp).not.toBe("original");
  });
});

describe("a replica that was promoted", () => {
  it("receives what every process changed since the replica was cut off, whichever process meets it first", async () => {
    const [one, two] = [new Process(), new Process()];
    const first = await inUse(one, two);
    const replica = first.replica("second");
    await clock.advance(SECOND);
    one.changed("a");
    two.changed("b");
    // Longer than replication usually takes: only the replica's note shows how far behind it is.
    for (let second = 0; second < 60; second += 10) {
      await clock.advance(10 * SECOND);
      for (const process of [one, two]) await process.confirm(first);
    }
    await one.meet(replica);
    await two.meet(replica);
    expect(replica.removed).toEqual(["a", "b"]);
    expect(replica.stamp).toBe("original");
  });

  it("receives it from a process that meets it only after others have confirmed the note", async () => {
    const [one, two] = [new Process(), new Process()];
    const replica = (await inUse(one, two)).replica("second");
    two.changed("b");
    await clock.advance(60 * SECOND);
    two.provenAt = clock.now();
    await one.meet(replica);
    await clock.advance(20 * SECOND);
    await one.confirm(replica);
    await two.meet(replica);
    expect(replica.removed).toEqual(["b"]);
  });

  it("receives it from a process that missed the server in between", async () => {
    const [one, two] = [new Process(), new Process()];
    const second = (await inUse(one, two)).replica("second");
    two.changed("b");
    await clock.advance(60 * SECOND);
    two.provenAt = clock.now();
    await one.meet(second);
    const third = second.replica("third");
    await one.meet(third);
    await two.meet(third);
    expect(third.removed).toEqual(["b"]);
  });

  it("receives again what was repeated on a server that is lost too", async () => {
    const one = new Process();
    const second = (await inUse(one)).replica("second");
    one.changed("a");
    await clock.advance(5 * SECOND);
    await one.meet(second);
    // It has the note written at that meeting, and nothing later.
    const third = second.replica("third");
    await clock.advance(40 * SECOND);
    await one.confirm(second);
    await one.meet(third);
    expect(third.removed).toEqual(["a"]);
  });

  it("has the namespace invalidated by a process that has forgotten some of its changes since", async () => {
    const one = new Process();
    const replica = (await inUse(one)).replica("second");
    for (let count = 0; count <= 50_000; count++) one.changed(`k${count}`);
    await one.meet(replica);
    expect(replica.removed).toEqual([]);
    expect(replica.stamp).not.toBe("original");
  });
});

describe("a question about the former server that the next one answers", () => {
  it("leaves the note of the next one untouched", async () => {
    const one = new Process();
    const first = await inUse(one);
    const replica = first.replica("second");
    const asked = first.asMet(one.provenAt);
    let answer: () => void = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const checking = one.continuity.check(NAMESPACE, {
      ...asked,
      records: {
        ...replica.asMet(0).records,
        read: (key) => answered.then(() => replica.asMet(0).records.read(key)),
      },
    });
    await one.meet(replica);
    const note = replica.records.get(NAMESPACE.noteKey(""));
    answer();
    await checking;
    expect(replica.records.get(NAMESPACE.noteKey(""))).toBe(note);
    expect(replica.stamp).toBe("original");
  });
});

describe("a server that was restarted after its clock was set back", () => {
  /** As a process meets it some seconds after the restart. */
  const restarted = (first: Server, backSeconds: number, upSeconds: number, provenAt: number) => {
    const server = first.replica("restarted");
    const met = server.asMet(provenAt);
    const now = (): number => clock.now() - backSeconds * SECOND;
    const startedAt = now() - upSeconds * SECOND;
    return { server, met: { ...met, startedAt, records: { ...met.records, now } } };
  };

  it.each([
    [5, 0],
    [5, 4],
    [14, 1],
    [20, 12],
  ])(
    "by %d s is not taken for a promoted replica by a process that was connected, %d s after",
    async (back, up) => {
      const one = new Process();
      const first = await inUse(one);
      await clock.advance(up * SECOND);
      const { server, met } = restarted(first, back, up, one.provenAt);
      await one.continuity.onServer(met, [NAMESPACE]);
      expect(server.stamp).not.toBe("original");
    },
  );

  it.each([
    [5, 0],
    [14, 1],
  ])("by %d s is not taken for one by a new process, %d s after", async (back, up) => {
    const first = await inUse(new Process());
    await clock.advance(up * SECOND);
    const { server, met } = restarted(first, back, up, 0);
    await new Process().continuity.onServer(met, [NAMESPACE]);
    expect(server.stamp).not.toBe("original");
  });
});

describe("a server that currently accepts no writes", () => {
  const full = (server: Server): ConnectedServer => {
    const met = server.asMet(0);
    const write = async (): Promise<never> => {
      throw new BackendError("STORE_FAILED", "no room");
    };
    return { ...met, records: { ...met.records, write } };
  };

  it("stays in use if the note matches, however old it is", async () => {
    const one = new Process();
    const server = await inUse(one);
    await clock.jump(60 * SECOND);
    await expect(one.continuity.check(NAMESPACE, full(server))).resolves.toEqual(expect.any(Number));
    expect(server.stamp).toBe("original");
  });

  it("is not used if the note does not match", async () => {
    const one = new Process();
    const replica = (await inUse(one)).replica("second");
    await expect(one.continuity.check(NAMESPACE, full(replica))).rejects.toThrow("no room");
  });
});

describe("a note that is gone", () => {
  const stamp = { kind: "stamp", version: "later", expires: Infinity } as const;

  it("is written again if it was seen on this very server: what was flushed with it is already dead", async () => {
    const one = new Process();
    const server = await inUse(one);
    server.records.clear();
    server.records.set(NAMESPACE.stampKey, stamp);
    await one.confirm(server);
    expect(server.records.has(NAMESPACE.noteKey(""))).toBe(true);
    expect(server.stamp).toBe("later");
  });

  it("invalidates the namespace if another server has taken over, or if this process has never seen the note", async () => {
    const [one, newcomer] = [new Process(), new Process()];
    const server = await inUse(one);
    for (const [process, runId] of [
      [one, "restored"],
      [newcomer, server.runId],
    ] as const) {
      const found = new Server(runId, [[NAMESPACE.stampKey, stamp]]);
      await process.meet(found);
      expect(found.stamp).not.toBe("later");
    }
  });
});

const NOTED: ReplicationHistory = { id: "a", offset: 100 };

describe("a master with the same run id", () => {
  /** Used with one history, then met with another by a process that changed something meanwhile. */
  async function met(history: ReplicationHistory): Promise<{ server: Server; late: Server }> {
    const process = new Process();
    const server = new Server("run");
    server.history = NOTED;
    await process.meet(server);
    server.records.set(NAMESPACE.stampKey, { kind: "stamp", version: "original", expires: Infinity });
    process.changed("changed");
    server.history = history;
    const late = server.replica("run");
    late.history = history;
    await process.meet(server);
    await new Process().meet(late);
    return { server, late };
  }

  it.each<[string, ReplicationHistory]>([
    ["goes on with its history", { id: "a", offset: 120 }],
    ["was promoted, having followed nobody", { id: "b", offset: 120, formerId: "a", formerEnd: 121 }],
    ["has a new history because its first replica came", { id: "b", offset: 101 }],
  ])("that %s has lost nothing", async (_what, history) => {
    const { server, late } = await met(history);
    expect(server.removed).toEqual([]);
    expect([server.stamp, late.stamp]).toEqual(["original", "original"]);
  });

  it.each<[string, ReplicationHistory]>([
    ["has followed another one", { id: "c", offset: 500, formerId: "b", formerEnd: 450 }],
    ["was promoted from before what was seen", { id: "b", offset: 120, formerId: "a", formerEnd: 90 }],
  ])(
    "that %s may have lost writes: they are repeated, and nothing older is served",
    async (_what, history) => {
      const { server, late } = await met(history);
      expect(server.removed).toEqual(["changed"]);
      for (const { stamp } of [server, late]) expect(stamp).not.toBe("original");
    },
  );

  it("that is noted with a younger history is not compared with what a connected process knew of it", async () => {
    const [one, two] = [new Process(), new Process()];
    const server = new Server("run");
    server.history = NOTED;
    await one.meet(server);
    server.records.set(NAMESPACE.stampKey, { kind: "stamp", version: "original", expires: Infinity });
    const known = server.asMet(clock.now());
    server.history = { id: "b", offset: 120, formerId: "a", formerEnd: 121 };
    await two.meet(server);
    await clock.advance(20 * SECOND);
    await one.continuity.check(NAMESPACE, known);
    await two.meet(server);
    expect(server.stamp).toBe("original");
  });
});

describe("a server whose lowest slot has moved", () => {
  it("is recognized by a process that was connected to it before: nothing is invalidated", async () => {
    const process = new Process();
    const server = await inUse(process);
    server.history = { id: "a", offset: 100 };
    await process.meet(server, "{moved}");
    expect(server.stamp).toBe("original");
    expect(server.records.has("p!server{moved}")).toBe(true);
  });

  it("is not recognized if several servers share one run id and have no history", async () => {
    const process = new Process();
    const server = await inUse(process);
    await process.meet(server, "{another}");
    expect(server.stamp).not.toBe("original");
  });

  it("is not recognized after a restart", async () => {
    const process = new Process();
    const restarted = (await inUse(process)).replica("restarted");
    await process.meet(restarted, "{moved}");
    expect(restarted.stamp).not.toBe("original");
  });
});
