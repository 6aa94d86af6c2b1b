// Narrow kinds of schedules: few things happen, so that they meet in many orders.
import { type Operation, tagsOf } from "./operations.ts";
import type { Plan, Troubles } from "./plan.ts";
import { ALL, type Step } from "./steps.ts";
import type { WorldSettings } from "./world.ts";

/** Groups of steps: those of a group follow each other at once, messages and time come between the groups. */
export type Program = readonly (readonly Step[])[];

export interface Drill {
  readonly name: string;
  readonly settings: Partial<WorldSettings>;
  readonly troubles?: Partial<Troubles>;
  readonly plan?: Partial<Plan>;
  readonly program?: Program;
}

const SLOW: Partial<Plan> = { haste: 6, loadEnds: 0.15 };
const HASTY: Partial<Plan> = { haste: 3 };
/** Loads end when the program says so, and little time passes. */
const RESTING: Partial<Plan> = { loadEnds: 0.01, haste: 0.3 };

/** Of two connections, the second one carries its entry; all stamps are on the first one. */
export const APART = "b";

const KEY = { key: "a", namespace: "" };
const TAGS = tagsOf("a");
const call = (process: number, operation: Operation, callers = 1): Step => ({
  do: "call",
  process,
  operation,
  callers,
});
const get = (process: number): Step => call(process, { do: "get", ...KEY });
const set = (process: number): Step => call(process, { do: "set", ...KEY, tags: TAGS });
const remove = (process: number): Step => call(process, { do: "delete", ...KEY });
const invalidate = (process: number, tag: string): Step =>
  call(process, { do: "invalidateTags", namespace: "", tags: [tag] });
const load = (process: number, more: Partial<Extract<Operation, { do: "getOrSet" }>> = {}): Step =>
  call(process, { do: "getOrSet", ...KEY, tags: TAGS, lateTags: [], outcome: "value", ...more });
/** Everything that a process sends is answered. */
const answered = (process: number): Step[] =>
  Array.from({ length: 10 }, (): Step[] => [
    { do: "serve", process, rank: 0, count: ALL },
    { do: "deliver", process, rank: 0, count: ALL },
  ]).flat();
/** As `answered`, while what was sent on a connection that is lost is still on its way. */
const overtaking = (process: number): Step[] =>
  Array.from({ length: 6 }, (): Step[] => [
    { do: "serve", process, rank: 1, count: ALL },
    { do: "deliver", process, rank: 0, count: ALL },
  ]).flat();
/** Time passes at most until the next timer is due, so these run on the way. */
const wait = (ms: number): Step[] =>
  Array.from({ length: ms / 200 }, (): Step[] => [{ do: "wait", ms: 400 }, { do: "tick" }]).flat();

/** As `answered`, on two connections, and what it opens is accepted. */
const connected = (process: number): Step[] =>
  Array.from({ length: 14 }, (): Step[] => [
    { do: "connect", process },
    { do: "serve", process, rank: 0, count: ALL },
    { do: "deliver", process, rank: 0, count: ALL },
    { do: "serve", process, rank: 1, count: ALL },
    { do: "deliver", process, rank: 1, count: ALL },
  ]).flat();

/** Time passes, and what a process sends meanwhile is answered. */
const lived = (process: number, ms: number): Step[] =>
  Array.from({ length: ms / 200 }, (): Step[] => [
    { do: "wait", ms: 200 },
    { do: "tick" },
    ...answered(process).slice(0, 4),
  ]).flat();

const POOLED = { poolSize: 2, keys: [APART] };
const removeApart = (process: number): Step => call(process, { do: "delete", key: APART, namespace: "" });
const getApart = (process: number): Step => call(process, { do: "get", key: APART, namespace: "" });
const STALE = { ttl: 0.4, staleIfError: 60 };

export const DRILLS: readonly Drill[] = [
  {
    name: "processes that begin to use a new prefix together",
    settings: { kinds: ["getOrSet", "getOrSet", "set", "get", "invalidateTags"] },
    plan: { isConnected: false, loadEnds: 0.3 },
  },
  {
    name: "a process that begins while another one begins",
    settings: {},
    program: [[load(0)], [load(1), ...connected(1), ...connected(1)]],
    plan: { isConnected: false, isUneven: false, ...RESTING },
  },
  {
    name: "tags that loads name themselves",
    settings: { lateTags: true, kinds: ["getOrSet", "getOrSet", "invalidateTags"] },
  },
  {
    name: "stale values, and who gets them",
    settings: {
      stale: true,
      processes: 3,
      kinds: ["getOrSet", "getOrSet", "getOrSet", "delete", "invalidateTags"],
    },
    plan: HASTY,
  },
  {
    name: "a stale value that is invalidated behind a lease",
    settings: { stale: true, processes: 3 },
    program: [
      [load(0, STALE), ...answered(0), { do: "load", rank: 0 }, ...answered(0), ...wait(800)],
      [load(0, { ...STALE, outcome: "error" })],
      [load(1, STALE)],
      [invalidate(2, "all"), ...answered(2)],
      [{ do: "load", rank: 0 }],
      [get(1)],
    ],
    plan: RESTING,
  },
  {
    name: "a stale value that its own process replaces while it takes the lease",
    settings: { stale: true },
    program: [
      [load(0, STALE), ...answered(0), { do: "load", rank: 0 }, ...answered(0), ...wait(800)],
      [set(0), load(0, STALE)],
      [{ do: "serve", process: 0, rank: 0, count: ALL }],
    ],
    plan: RESTING,
  },
  {
    name: "a process that leaves while its changes are on their way",
    settings: {},
    program: [
      // It asks for the stamps first.
      [set(0), ...answered(0).slice(0, 2)],
      [call(0, { do: "disconnect" })],
      [remove(1), ...answered(1)],
      [{ do: "serve", process: 0, rank: 0, count: ALL }],
      [get(1)],
    ],
  },
  {
    name: "two connections that begin while another process writes",
    settings: { ...POOLED },
    program: [
      [load(1, { key: APART }), ...connected(1), ...connected(1)],
      [load(0, { key: APART })],
      ...Array.from({ length: 6 }, (): Step[] => [invalidate(1, "another"), ...answered(1)]),
    ],
    plan: { isConnected: false, ...RESTING },
  },
  {
    name: "loads that outlast several renewals of their leases",
    settings: { kinds: ["getOrSet", "getOrSet", "delete"] },
    plan: SLOW,
  },
  {
    name: "a load that takes longer than its entry lives",
    settings: {},
    program: [
      [load(0, { ttl: 0.4 }), ...answered(0), ...lived(0, 1_600)],
      [load(1, { ttl: 0.4 })],
      [{ do: "load", rank: 0 }],
    ],
    plan: RESTING,
  },
  {
    name: "a load that never ends",
    settings: { hangs: true },
    program: [[load(0, { outcome: "hang" })], [load(1)]],
  },
  {
    name: "loads that store nothing, and who waits for them",
    settings: { processes: 3, fails: true, kinds: ["getOrSet"] },
    plan: { loadEnds: 0.6 },
  },
  {
    name: "a caller that joins a load whose late tag was invalidated",
    settings: { lateTags: true },
    program: [
      [load(0, { lateTags: ["late"] }), ...answered(0)],
      [invalidate(1, "late"), ...answered(1), ...wait(1_600)],
      [load(0, { lateTags: ["late"] })],
      [{ do: "load", rank: 0 }],
    ],
    plan: RESTING,
  },
  {
    name: "the near tier",
    settings: { near: true, kinds: ["get", "get", "set", "delete", "invalidateTags"] },
    troubles: { holds: true },
    plan: HASTY,
  },
  {
    name: "the near tier of a process that hears nothing",
    settings: { near: true },
    program: [
      [set(1)],
      [get(0)],
      [get(0)],
      [{ do: "hold", process: 0 }, remove(1)],
      [...wait(1_600), get(0)],
      [{ do: "release", process: 0 }],
    ],
  },
  {
    name: "the near tier of the process that changes something",
    settings: { near: true },
    program: [[set(0)], [get(0)], [get(0)], [remove(0)], [get(0)], [set(0)], [get(0)]],
  },
  {
    name: "bytes that arrive late",
    settings: { kinds: ["set", "set", "get"] },
    troubles: { holds: true, resets: true },
  },
  {
    name: "a set that arrives after the next one",
    settings: {},
    program: [
      [set(0), ...answered(0)],
      // It asks for the stamps first.
      [set(0), ...answered(0).slice(0, 2), { do: "reset", process: 0, arrives: true }],
      [{ do: "tick" }, { do: "connect", process: 0 }, ...overtaking(0), set(0), ...overtaking(0)],
      [{ do: "serve", process: 0, rank: 0, count: ALL }],
      [get(1)],
      [get(1)],
    ],
  },
  {
    name: "failovers",
    settings: { hasReplica: true, kinds: ["set", "delete", "get", "invalidateTags"] },
    troubles: { failovers: true },
  },
  {
    name: "two masters for a while",
    settings: { hasReplica: true, kinds: ["set", "get", "invalidatePattern", "delete", "getOrSet"] },
    troubles: { failovers: true },
  },
  {
    name: "a pattern that is invalidated while a failover begins",
    settings: { hasReplica: true },
    program: [
      [set(0), ...answered(0)],
      [{ do: "promote" }],
      [call(0, { do: "invalidatePattern", namespace: "", pattern: "*" })],
      [get(0)],
      [{ do: "failover" }],
    ],
  },
  {
    name: "a master that becomes a replica and keeps its connections",
    settings: { hasReplica: true },
    program: [
      [set(0), ...answered(0)],
      [{ do: "replicate", count: ALL }],
      [remove(0), ...answered(0)],
      [get(0), { do: "demote" }],
      [get(0)],
      [{ do: "demote" }],
      [get(1)],
      [get(0)],
    ],
  },
  {
    name: "failing over and back",
    settings: { hasReplica: true },
    program: [
      [set(0)],
      [{ do: "replicate", count: ALL }],
      [remove(0)],
      [{ do: "failover" }, { do: "failover" }],
      [get(1)],
      [get(0)],
    ],
  },
  {
    name: "a store that is restarted from an older snapshot",
    settings: { kinds: ["set", "set", "delete", "invalidateTags", "get"] },
    troubles: { restarts: true },
  },
  {
    name: "a store whose clock is set back before it is restarted",
    settings: {},
    program: [
      [set(0), ...answered(0)],
      [{ do: "save" }],
      [set(0), ...answered(0)],
      [{ do: "step clock", ms: -5_000 }],
      [{ do: "restart" }],
      [get(1)],
      [get(0)],
    ],
  },
  {
    name: "what a process leaves behind",
    settings: {
      processes: 3,
      kinds: ["set", "getOrSet", "getOrSet", "delete", "invalidateTags", "disconnect"],
    },
    troubles: { resets: true },
  },
  {
    name: "a process that leaves while it owes something",
    settings: {},
    program: [
      [set(0)],
      [remove(0), { do: "reset", process: 0, arrives: false }],
      [call(0, { do: "disconnect" })],
      [get(1)],
    ],
  },
  {
    name: "a store that is away for a while",
    settings: {},
    program: [
      [set(0)],
      [{ do: "down" }],
      [remove(0)],
      ...Array.from({ length: 6 }, () => [get(0)]),
      [{ do: "up" }],
      [get(0)],
      [get(0)],
    ],
  },
  {
    name: "two connections, and faults of one of them",
    settings: { ...POOLED, kinds: ["get", "get", "getOrSet", "set", "delete", "invalidateTags"] },
    troubles: { holds: true, resets: true },
    plan: HASTY,
  },
  {
    name: "the near tier of a process with two connections",
    settings: { ...POOLED, near: true, kinds: ["get", "get", "set", "delete", "invalidateTags"] },
    troubles: { holds: true },
    plan: HASTY,
  },
  {
    name: "two connections, and failovers",
    settings: { ...POOLED, hasReplica: true, kinds: ["set", "delete", "get", "getOrSet", "invalidateTags"] },
    troubles: { failovers: true, resets: true },
  },
  {
    name: "two connections to a store that is restarted from an older snapshot",
    settings: { ...POOLED, kinds: ["set", "delete", "get", "getOrSet", "invalidateTags"] },
    troubles: { restarts: true, holds: true },
  },
  {
    name: "a load that names a tag while one connection holds back its invalidation",
    settings: { poolSize: 2, keys: ["a"], lateTags: true },
    program: [
      [load(1, { lateTags: ["late"] }), ...answered(1)],
      [{ do: "hold", process: 0, connection: 0 }, invalidate(0, "late")],
      [{ do: "load", rank: 0 }, ...answered(1)],
      [{ do: "release", process: 0 }],
      [get(1)],
    ],
    plan: RESTING,
  },
  {
    name: "the near tier of a process that hears nothing on one of two connections",
    settings: { poolSize: 2, keys: ["a"], near: true },
    program: [
      [set(1), ...answered(1)],
      [get(0), ...answered(0)],
      [get(0), ...answered(0)],
      [{ do: "hold", process: 0, connection: 0 }, remove(1), ...answered(1)],
      ...Array.from({ length: 5 }, (): Step[] => [{ do: "wait", ms: 250 }, get(0), ...answered(0)]),
      [{ do: "release", process: 0 }],
    ],
  },
  {
    name: "two connections that lead to two masters for a while",
    settings: { ...POOLED, hasReplica: true },
    program: [
      // A loaded value: one that was set would be deleted again when its process repeats its changes.
      [load(0, { key: APART }), ...connected(0), { do: "load", rank: 0 }, ...connected(0)],
      [{ do: "replicate", count: ALL }],
      [{ do: "promote" }, { do: "reset", process: 0, connection: 0, arrives: false }],
      // The timer is that of the pause before it connects again.
      [{ do: "tick" }, ...connected(0), removeApart(0), ...connected(0)],
      [{ do: "failover" }],
      [getApart(1)],
      [getApart(0)],
    ],
  },
  {
    name: "a caller that would join a load whose lease is gone",
    settings: {},
    program: [
      [load(0), ...answered(0)],
      [remove(1), ...answered(1), ...lived(0, 3_600)],
      [load(0)],
      [{ do: "load", rank: 0 }],
    ],
    plan: RESTING,
  },
  {
    name: "a read after a pattern whose scan has lost its connection",
    settings: {},
    program: [
      [set(0), ...answered(0)],
      [
        call(0, { do: "invalidatePattern", namespace: "", pattern: "*" }),
        { do: "connect", process: 0 },
        { do: "reset", process: 0, connection: 1, arrives: false },
        get(0),
      ],
      [get(0)],
    ],
  },
];
