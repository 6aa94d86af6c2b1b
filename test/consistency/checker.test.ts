// The checker of the consistency test: for every rule a history that keeps it and one that does not.
import { describe, expect, test } from "vitest";
import { check } from "./checker.ts";
import { NOTICE_MS, OPERATION_TIMEOUT_MS, RESUME_MS, SLACK_MS } from "./evidence.ts";
import { type Call, type FaultRun, type HistoryRecord, historyOf, type LoadRun } from "./history.ts";
import { planOf, type StoreKind } from "./plan.ts";

const KEY = "a:1";
const TAG = "own a:1";

let ids = 0;
const id = (): string => `hand.${++ids}`;

type CallFacts = Partial<Call> & Pick<Call, "operation" | "start" | "end">;
const call = (facts: CallFacts): Call => ({
  kind: "call",
  id: id(),
  worker: 0,
  ...(["clear", "invalidateTags", "invalidatePattern"].includes(facts.operation) ? {} : { keys: [KEY] }),
  ...facts,
});

type LoadFacts = Partial<LoadRun> & Pick<LoadRun, "start" | "end">;
const load = (facts: LoadFacts): LoadRun => ({
  kind: "load",
  id: id(),
  worker: 0,
  call: "none",
  key: KEY,
  tags: [TAG],
  hasLateTags: false,
  ttlMs: 60_000,
  at: facts.start,
  outcome: "value",
  ...facts,
});

const given = (source: { readonly id: string }, key = KEY) => ({ values: [{ id: source.id, key }] });

const fault = (facts: Pick<FaultRun, "what" | "start" | "healed"> & Partial<FaultRun>): FaultRun => ({
  kind: "fault",
  mayLose: false,
  ...facts,
});

const probe = (worker: number, start: number, works = true): Call =>
  call({
    operation: "delete",
    keys: [`probe:${worker}`],
    worker,
    start,
    end: start + 1,
    probe: true,
    ...(works ? {} : { failure: { code: "CONNECTION_FAILED" } }),
  });

const guarantees = (...records: HistoryRecord[]): number[] =>
  check(historyOf(2, records)).map(({ guarantee }) => guarantee);

describe("guarantee 1: one load per key between invalidations", () => {
  const first = load({ start: 0, end: 100 });

  test("a second load while the first runs, in any process, is found", () => {
    expect(guarantees(first, load({ start: 50, end: 90, worker: 1 }))).toEqual([1]);
    expect(guarantees(first, load({ start: 50, end: 90 }))).toEqual([1]);
  });

  test("a second load of a stored value that was not invalidated is found", () => {
    expect(guarantees(first, load({ start: 5_000, end: 5_010, worker: 1 }))).toEqual([1]);
  });

  test("a load of another key, after the ttl, or after one that stored nothing is fine", () => {
    expect(guarantees(first, load({ start: 50, end: 90, key: "b:1" }))).toEqual([]);
    expect(guarantees(load({ start: 0, end: 9, ttlMs: 500 }), load({ start: 600, end: 610 }))).toEqual([]);
    for (const outcome of ["skip", "error"] as const)
      expect(guarantees(load({ start: 0, end: 9, outcome }), load({ start: 20, end: 30 }))).toEqual([]);
  });

  test("a second load may not overlap the first just because that stores nothing", () => {
    expect(guarantees(load({ start: 0, end: 90, outcome: "skip" }), load({ start: 20, end: 30 }))).toEqual([
      1,
    ]);
  });

  test.each<[string, CallFacts]>([
    ["delete", { operation: "delete", start: 30, end: 31 }],
    ["set", { operation: "set", start: 30, end: 31 }],
    ["invalidateTags", { operation: "invalidateTags", tags: [TAG], start: 30, end: 31 }],
    ["invalidatePattern", { operation: "invalidatePattern", pattern: "a:*", start: 30, end: 31 }],
    ["clear", { operation: "clear", start: 30, end: 31 }],
  ])("%s between them makes it fine, unless it is about something else", (_name, facts) => {
    const second = load({ start: 50, end: 90, worker: 1 });
    expect(guarantees(first, second, call(facts))).toEqual([]);
    if (facts.operation === "clear") return;
    const other = { ...facts, keys: ["b:1"], tags: ["own b:1"], pattern: "b:*" };
    expect(guarantees(first, second, call(other))).toEqual([1]);
    expect(guarantees(first, second, call({ ...facts, start: 55, end: 56 }))).toEqual([1]);
  });

  test("a change just before a load voids it, one well before it does not", () => {
    const waited = load({ start: 1_000, end: 1_100, call: "early" });
    const asked = call({ id: "early", operation: "getOrSet", start: 100, end: 1_101, ...given(waited) });
    const second = load({ start: 5_000, end: 5_010 });
    const changeAt = (start: number, worker: number) =>
      call({ operation: "delete", start, end: start + 1, worker });
    for (const worker of [0, 1]) {
      expect(guarantees(waited, asked, second, changeAt(200, worker))).toEqual([1]);
      expect(guarantees(waited, asked, second, changeAt(900, worker))).toEqual([]);
    }
  });

  test("tags that the load names late may collide with any others", () => {
    const late = load({ start: 0, end: 100, hasLateTags: true });
    const change = call({ operation: "invalidateTags", tags: ["own b:1"], start: 30, end: 31 });
    expect(guarantees(late, change, load({ start: 200, end: 210 }))).toEqual([]);
    expect(guarantees(late, change, load({ start: 90, end: 95 }))).toEqual([1]);
  });

  test("a fault, or a store failure of either process, excuses it, but not long afterwards", () => {
    const second = load({ start: 50, end: 90, worker: 1 });
    expect(guarantees(first, second, fault({ what: "flush", start: 10, healed: 11 }))).toEqual([]);
    const trouble = { kind: "trouble", worker: 1, at: 45, code: "OPERATION_TIMEOUT" } as const;
    expect(guarantees(first, second, trouble)).toEqual([]);
    expect(guarantees(first, second, { ...trouble, at: 95 })).toEqual([1]);
    const [late, later] = [load({ start: 20_000, end: 20_100 }), load({ start: 20_050, end: 20_100 })];
    expect(guarantees(late, later, fault({ what: "flush", start: 10, healed: 11 }))).toEqual([1]);
  });
});

describe("guarantee 2: an invalidation is never lost to a load in flight", () => {
  const flight = load({ start: 0, at: 10, end: 100 });
  const change = call({ operation: "delete", start: 20, end: 30 });

  test("a value read before it and served after it, in the process that issued it, is found", () => {
    const read = call({ operation: "get", start: 110, end: 111, ...given(flight) });
    expect(guarantees(flight, change, read)).toEqual([2]);
    expect(guarantees(flight, { ...change, worker: 1 }, read)).toEqual([]);
    expect(guarantees(flight, change, { ...read, start: 29 })).toEqual([]);
    expect(guarantees({ ...flight, at: 40 }, change, read)).toEqual([]);
  });

  test("joining the older load after it is found too", () => {
    const joined = call({ operation: "getOrSet", start: 40, end: 101, ...given(flight) });
    expect(guarantees(flight, change, joined)).toEqual([2]);
    expect(guarantees(flight, change, { ...joined, start: 15 })).toEqual([]);
  });

  test("other processes have the stated time to notice, and the lag of their event loop", () => {
    const late = 30 + NOTICE_MS + 50;
    const read = call({ operation: "getMany", worker: 1, start: late, end: late + 1, ...given(flight) });
    expect(guarantees(flight, change, read)).toEqual([2]);
    expect(guarantees(flight, change, { ...read, start: 30 + NOTICE_MS - 50 })).toEqual([]);
    expect(guarantees(flight, change, read, { kind: "lag", worker: 1, start: 500, end: 600 })).toEqual([]);
  });

  test("tags count if the value carries them, including those named late", () => {
    const read = call({ operation: "get", start: 110, end: 111, ...given(flight) });
    const tags = call({ operation: "invalidateTags", tags: [TAG], start: 20, end: 30 });
    expect(guarantees(flight, tags, read)).toEqual([2]);
    expect(guarantees(flight, { ...tags, tags: ["other"] }, read)).toEqual([]);
  });

  test("a value that was not to be stored is found when it is served to any but its load's callers", () => {
    const skipped = load({ start: 0, end: 100, outcome: "skip" });
    const caller = call({ operation: "getOrSet", start: 50, end: 101, ...given(skipped) });
    expect(guarantees(skipped, caller)).toEqual([]);
    expect(guarantees(skipped, { ...caller, worker: 1 })).toEqual([2]);
    expect(guarantees(skipped, call({ operation: "get", start: 200, end: 201, ...given(skipped) }))).toEqual([
      2,
    ]);
  });
});

describe("guarantee 3: an invalidated entry never comes back", () => {
  const stored = load({ start: 0, end: 10 });
  const change = call({ operation: "clear", start: 2_000, end: 2_010 });
  const readAt = (start: number, worker: number): Call =>
    call({ operation: "get", worker, start, end: start + 1, ...given(stored) });

  test("it is found however late, in any process", () => {
    expect(guarantees(stored, change, readAt(90_000, 1))).toEqual([3]);
    expect(guarantees(stored, change, readAt(2_011, 0))).toEqual([3]);
    expect(guarantees(stored, change, readAt(1_999, 0))).toEqual([]);
  });

  test("a restored snapshot is no excuse", () => {
    const restored = fault({ what: "restore", start: 3_000, healed: 3_500 });
    expect(guarantees(stored, change, restored, readAt(4_000, 1))).toEqual([3]);
  });

  test("a failover excuses other processes until the issuer has met the new server, and never the issuer", () => {
    const failover = fault({ what: "failover by death", start: 3_000, healed: 5_000, mayLose: true });
    expect(guarantees(stored, change, failover, readAt(5_100, 1))).toEqual([]);
    expect(guarantees(stored, change, failover, readAt(5_100, 0))).toEqual([3]);
    expect(guarantees(stored, change, failover, readAt(5_000 + RESUME_MS + NOTICE_MS + 10, 1))).toEqual([3]);
    const met = 5_200 + NOTICE_MS + 10;
    const alive = [probe(0, 5_200), probe(1, 5_200)];
    expect(guarantees(stored, change, failover, ...alive, readAt(met, 1))).toEqual([3]);
  });

  test("either of two concurrent sets may be the later one; of two successive sets the second is", () => {
    const first = call({ operation: "set", start: 100, end: 200 });
    const read = call({ operation: "get", start: 5_000, end: 5_001, ...given(first) });
    expect(guarantees(first, call({ operation: "set", start: 150, end: 160 }), read)).toEqual([]);
    expect(guarantees(first, call({ operation: "set", start: 210, end: 220 }), read)).toEqual([3]);
  });

  test("a failed set may still take effect, for others, until its process has compensated for it", () => {
    const failed = call({
      operation: "set",
      worker: 1,
      start: 100,
      end: 600,
      failure: { code: "OPERATION_TIMEOUT" },
    });
    const deleted = call({ operation: "delete", start: 700, end: 710 });
    const read = call({ operation: "get", start: 720, end: 721, ...given(failed) });
    expect(guarantees(failed, deleted, probe(1, 800), read)).toEqual([]);
    const late = call({ operation: "delete", start: 20_000, end: 20_010 });
    const again = call({ operation: "get", start: 20_020, end: 20_021, ...given(failed) });
    expect(guarantees(failed, late, probe(1, 800), again)).toEqual([3]);
  });

  test("a value that was never stored, or belongs to another key, is found", () => {
    expect(guarantees(call({ operation: "get", start: 1, end: 2, ...given({ id: "nobody" }) }))).toEqual([3]);
    const other = call({ operation: "get", keys: ["b:1"], start: 20, end: 21, ...given(stored) });
    expect(guarantees(stored, other)).toEqual([3]);
  });
});

describe("guarantee 4: a load's error reaches all its waiters once, unwrapped", () => {
  const failing = load({ start: 0, end: 100, outcome: "error", call: "first" });
  const failed = (facts: Partial<Call>): Call =>
    call({
      operation: "getOrSet",
      start: 50,
      end: 101,
      failure: { code: "LOAD", load: failing.id, same: true },
      ...facts,
    });

  test("waiters that all fail with the same error object are fine", () => {
    expect(guarantees(failing, failed({ id: "first", start: 0 }), failed({}), failed({}))).toEqual([]);
  });

  test("another object, another process's or another key's error is found", () => {
    expect(guarantees(failing, failed({ failure: { code: "LOAD", load: failing.id, same: false } }))).toEqual(
      [4],
    );
    expect(guarantees(failing, failed({ worker: 1 }))).toEqual([4]);
    expect(guarantees(failing, failed({ keys: ["b:1"] }))).toEqual([4]);
    expect(guarantees(failing, failed({ start: 150, end: 160 }))).toEqual([4]);
  });

  test("a waiter that runs the load again is found; a later call may do so", () => {
    const again = load({ start: 101, end: 120, call: "waiter" });
    const waiter = call({ id: "waiter", operation: "getOrSet", start: 50, end: 121, ...given(again) });
    expect(guarantees(failing, again, waiter)).toEqual([4]);
    expect(guarantees(failing, again, { ...waiter, start: 100.5 })).toEqual([]);
    const change = call({ operation: "delete", start: 20, end: 21 });
    expect(guarantees(failing, again, change, waiter)).toEqual([]);
  });
});

describe("guarantee 5: the lock survives a hard timeout", () => {
  test("a second load after the first one's timeout is found, and so is a discarded result", () => {
    const slow = load({ start: 0, end: 2_000 });
    const timeout = call({ operation: "getOrSet", start: 0, end: 150, failure: { code: "LOAD_TIMEOUT" } });
    expect(guarantees(slow, timeout)).toEqual([]);
    expect(guarantees(slow, timeout, load({ start: 200, end: 210 }))).toEqual([5]);
    expect(guarantees(slow, timeout, load({ start: 2_100, end: 2_110, worker: 1 }))).toEqual([5]);
  });
});

describe("guarantee 6: a failing store", () => {
  const most = OPERATION_TIMEOUT_MS + SLACK_MS;

  test("delays a call by no more than the deadline", () => {
    expect(guarantees(call({ operation: "get", start: 0, end: most - 10 }))).toEqual([]);
    expect(guarantees(call({ operation: "get", start: 0, end: most + 10 }))).toEqual([6]);
    const lag = { kind: "lag", worker: 0, start: 100, end: 200 } as const;
    expect(guarantees(call({ operation: "get", start: 0, end: most + 10 }), lag)).toEqual([]);
  });

  test("delays a getOrSet by no more than that plus the loads it waits for, or its hard timeout", () => {
    const slow = load({ start: 100, end: 3_100 });
    const waiter = call({ operation: "getOrSet", start: 0, end: most + 2_900, ...given(slow) });
    expect(guarantees(slow, waiter)).toEqual([]);
    expect(guarantees(slow, { ...waiter, end: most + 3_100 })).toEqual([6]);
    expect(guarantees(slow, { ...waiter, hardTimeoutMs: 150 })).toEqual([6]);
  });

  test("delays no call while the circuit is open", () => {
    const refused = { operation: "delete", failure: { code: "CIRCUIT_OPEN" } } as const;
    expect(guarantees(call({ ...refused, start: 0, end: 5 }))).toEqual([]);
    expect(guarantees(call({ ...refused, start: 0, end: 400 }))).toEqual([6]);
  });

  test("does not fail a getOrSet", () => {
    const failure = { code: "OPERATION_TIMEOUT" };
    expect(guarantees(call({ operation: "getOrSet", start: 0, end: 500, failure }))).toEqual([6]);
    expect(guarantees(call({ operation: "get", start: 0, end: 500, failure }))).toEqual([]);
  });

  test("is used again by every process once it recovers", () => {
    const frozen = fault({ what: "freeze", start: 100, healed: 1_000 });
    const healthy = [probe(0, 50), probe(1, 50), probe(0, 1_200), probe(1, 1_500)];
    expect(guarantees(frozen, ...healthy)).toEqual([]);
    const late = 1_000 + RESUME_MS + 100;
    expect(guarantees(frozen, probe(0, 1_200), probe(1, 1_500, false), probe(1, late))).toEqual([6]);
    const still = { kind: "lag", worker: 1, start: 2_000, end: late + 1_000 } as const;
    expect(
      guarantees(frozen, probe(0, 1_200), probe(1, 1_500, false), still, probe(1, late + 1_100)),
    ).toEqual([]);
    const longer = 1_000 + RESUME_MS + (still.end - still.start) + 100;
    expect(guarantees(frozen, probe(0, 1_200), probe(1, 1_500, false), still, probe(1, longer))).toEqual([6]);
    // The run ended before it could tell.
    expect(guarantees(frozen, probe(0, 1_200), probe(1, 1_500, false), probe(1, late - 200, false))).toEqual(
      [],
    );
  });

  test("that missed an invalidation is not read by its issuer, and by others only until it is delivered", () => {
    const stored = load({ start: 0, end: 10 });
    const change = call({
      operation: "invalidateTags",
      tags: [TAG],
      start: 100,
      end: 600,
      failure: { code: "OPERATION_TIMEOUT" },
    });
    const readAt = (start: number, worker: number): Call =>
      call({ operation: "get", worker, start, end: start + 1, ...given(stored) });
    const back = probe(0, 2_000);
    expect(guarantees(stored, change, back, readAt(601, 0))).toEqual([6]);
    expect(guarantees(stored, change, back, readAt(601, 1))).toEqual([]);
    expect(guarantees(stored, change, back, readAt(20_000, 1))).toEqual([3]);
    expect(guarantees(stored, change, readAt(20_000, 1))).toEqual([]);
    // A process that serves entries with the tag has delivered the invalidation before.
    const newer = load({ start: 2_000, end: 2_010 });
    const served = call({ operation: "get", start: 2_050, end: 2_051, ...given(newer) });
    expect(guarantees(stored, change, back, newer, served, readAt(2_100 + NOTICE_MS, 1))).toEqual([3]);
  });
});

describe("a plan", () => {
  const setting = { seconds: 20, store: "cluster", near: true } as const;

  test("is the same for the same seed, and differs for another", () => {
    expect(planOf({ seed: 7, ...setting })).toEqual(planOf({ seed: 7, ...setting }));
    expect(planOf({ seed: 7, ...setting })).not.toEqual(planOf({ seed: 8, ...setting }));
  });

  test("has every operation for every process, and a failover where there can be one", () => {
    const { workers, faults } = planOf({ seed: 7, ...setting });
    const all = [
      "clear",
      "delete",
      "get",
      "getMany",
      "getOrSet",
      "invalidatePattern",
      "invalidateTags",
      "set",
    ];
    for (const steps of workers) expect([...new Set(steps.map((step) => step.do))].sort()).toEqual(all);
    expect(faults[0]?.what).toMatch(/^failover/);
  });

  test.each<[StoreKind, RegExp[]]>([
    ["one", [/^restore/, /^freeze/]],
    ["sentinel", [/^failover by death/, /^flush/]],
    ["cluster", [/^failover/, /^flush/]],
  ])("of %s has the worst faults even in a short run, whatever the seed", (store, worst) => {
    for (let seed = 0; seed < 200; seed++) {
      const { faults } = planOf({ seed, seconds: 15, store, near: true });
      const kinds = faults.map(({ what }) => what).filter((what) => what !== "save");
      for (const [at, kind] of worst.entries()) expect(kinds[at], `seed ${seed}`).toMatch(kind);
    }
  });
});
