// Reads what all processes of a namespace report about themselves.
import type { OwnRecords } from "../../core/own-records.ts";
import type {
  FleetActivity,
  FunctionMinute,
  FunctionStats,
  InvalidationMark,
  ProcessStats,
  StateChange,
} from "../../core/stats.ts";
import { type Activity, activityOf, functionStats, mergeActivity } from "./activity.ts";
import { minuteOf } from "./minute.ts";
import {
  ACTIVITY_MS,
  activityName,
  PRESENCE_MS,
  PRESENCE_RECORDS,
  type Presence,
  type ProcessReport,
  presenceName,
  presencesOf,
  statesName,
} from "./process-report.ts";
import { MINUTE_MS } from "./process-share.ts";

const READ_BATCH = 240;

/** `own`: the report of this process, which may not be written yet; undefined for a cache that reports nothing. */
export async function fleetActivity(
  records: OwnRecords,
  seconds: number,
  own: ProcessReport | undefined,
): Promise<FleetActivity> {
  const presences = await readPresences(records, own);
  const minutes = await readMinutes(records, seconds, own);
  const states = await records.read(presences.map(({ id }) => statesName(id)));
  const processes = presences.map((presence, at) => {
    const isOwn = presence.id === own?.id;
    return processStats(presence, isOwn ? own.states : stateChangesOf(states[at]), isOwn);
  });
  return { processes, functions: functionsOf(minutes), invalidations: invalidationsOf(minutes) };
}

async function readPresences(
  records: OwnRecords,
  own: ProcessReport | undefined,
): Promise<readonly Presence[]> {
  const names = Array.from({ length: PRESENCE_RECORDS }, (_, at) => presenceName(at));
  const now = records.now();
  const others = (await records.read(names))
    .flatMap(presencesOf)
    .filter(({ id, at }) => id !== own?.id && at > now - PRESENCE_MS);
  const all = own?.hasBegun ? [...others, own.presence()] : others;
  return all.toSorted((one, other) => `${one.host}${one.id}`.localeCompare(`${other.host}${other.id}`));
}

type Minutes = ReadonlyMap<number, Activity>;

async function readMinutes(
  records: OwnRecords,
  seconds: number,
  own: ProcessReport | undefined,
): Promise<Minutes> {
  const now = records.now();
  const last = Math.floor(now / MINUTE_MS);
  const first = Math.floor((now - Math.min(seconds * 1_000, ACTIVITY_MS)) / MINUTE_MS);
  const found = new Map<number, Activity>();
  for (let from = first; from <= last; from += READ_BATCH) {
    const count = Math.min(READ_BATCH, last - from + 1);
    const names = Array.from({ length: count }, (_, at) => activityName(from + at));
    for (const [at, value] of (await records.read(names)).entries()) {
      const activity = activityOf(value);
      if (activity !== undefined) found.set(from + at, activity);
    }
  }
  for (const [minute, activity] of own?.unwritten() ?? []) {
    const present = found.get(minute);
    found.set(minute, present === undefined ? activity : mergeActivity(present, activity));
  }
  return found;
}

function processStats(presence: Presence, states: readonly StateChange[], isSelf: boolean): ProcessStats {
  const { id, host, pid, version, heapBytes, breaker, alerts } = presence;
  const { at: _, processes: __, ...figures } = minuteOf(presence.row, 0);
  const seconds = Math.max(0.001, presence.windowMs / 1_000);
  return {
    id,
    host,
    pid,
    version,
    startedAt: new Date(presence.startedAt).toISOString(),
    seenAt: new Date(presence.at).toISOString(),
    isSelf,
    seconds,
    operationsPerSecond: figures.totalOperations / seconds,
    heapBytes,
    circuitBreaker: breaker,
    alerts,
    states,
    ...figures,
  };
}

function stateChangesOf(value: unknown): readonly StateChange[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (each: Partial<StateChange> | null) =>
      typeof each?.at === "string" && typeof each.what === "string" && typeof each.state === "string",
  );
}

const timeOf = (minute: number): string => new Date(minute * MINUTE_MS).toISOString();

function functionsOf(minutes: Minutes): readonly FunctionStats[] {
  let sum: Activity = { functions: new Map(), invalidations: new Map() };
  const histories = new Map<string, FunctionMinute[]>();
  for (const [minute, activity] of minutes) {
    sum = mergeActivity(sum, activity);
    for (const [name, row] of activity.functions) {
      const { calls, hits, loads } = functionStats(name, row);
      const history = histories.get(name) ?? [];
      histories.set(name, history);
      history.push({ at: timeOf(minute), calls, hits, loads });
    }
  }
  return [...sum.functions]
    .map(([name, row]) => ({ ...functionStats(name, row), history: histories.get(name) ?? [] }))
    .toSorted((one, other) => other.calls - one.calls);
}

function invalidationsOf(minutes: Minutes): readonly InvalidationMark[] {
  return [...minutes].flatMap(([minute, { invalidations }]) =>
    [...invalidations].map(([name, count]) => ({
      at: timeOf(minute),
      ...(name.startsWith("#")
        ? { kind: "tag" as const, tag: name.slice(1) }
        : { kind: name as "pattern" | "clear" | "other" }),
      count,
    })),
  );
}
