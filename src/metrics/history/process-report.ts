// What this process reports about itself in one namespace: that it is alive, its figures, and what it did by the minute.
import type { ReportedAlert } from "../../core/alert-state.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { type CounterRow, sumOf } from "../../core/counters.ts";
import { nodeOs } from "../../core/lazy-builtin.ts";
import type { OwnRecords } from "../../core/own-records.ts";
import type { StateChange } from "../../core/stats.ts";
import { VERSION } from "../../version.ts";
import { type Activity, activityOf, mergeActivity } from "./activity.ts";
import { rowSince } from "./minute.ts";
import { MINUTE_MS } from "./process-share.ts";

const REPORT_EVERY_MS = 10_000;
/** A process that has not reported for this long has ended. */
export const PRESENCE_MS = 60_000;
/** Processes are spread over this many records, so that a large fleet does not contend for one. */
export const PRESENCE_RECORDS = 16;
/** What happened by function and tag is kept for a day at most: it is much more than the counts of a minute. */
export const ACTIVITY_MS = 86_400_000;
const MOST_STATES = 200;
/** Unwritten minutes kept while the store does not answer. */
const MAX_UNWRITTEN = 10;
/** The figures are those of the last minute. */
const READINGS = 6;

export interface Presence {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** By the store's clock. */
  readonly startedAt: number;
  readonly at: number;
  /** What the row covers. */
  readonly windowMs: number;
  readonly row: CounterRow;
  readonly heapBytes: number;
  readonly breaker: string;
  readonly alerts: readonly ReportedAlert[];
}

/** One cache object of this process. */
export interface ReportingCache {
  readonly retentionMs: number;
  /** Everything it has counted so far. */
  row(): CounterRow;
  /** Since the last call; undefined: nothing. */
  takeActivity(): Activity | undefined;
  breaker(): string;
  alerts(): readonly ReportedAlert[];
}

export const presenceName = (at: number): string => `processes:${at}`;
export const activityName = (minute: number): string => `activity:${minute}`;
export const statesName = (id: string): string => `states:${id}`;

interface Reading {
  readonly at: number;
  readonly row: CounterRow;
}

export class ProcessReport {
  #id: string | undefined;
  readonly #records: OwnRecords;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #caches = new Set<ReportingCache>();
  readonly #unwritten = new Map<number, Activity>();
  #readings: Reading[] = [];
  #states: StateChange[] = [];
  #hasNewStates = false;
  #timer: Timer | undefined;
  #hasBegun = false;
  /** Others may have seen its presence. */
  #isListed = false;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(records: OwnRecords, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
    this.#startedAt = records.now();
  }

  get id(): string {
    this.#id ??= Buffer.from(this.#clock.token(), "latin1").toString("hex");
    return this.#id;
  }

  /** Returns a function to leave. */
  join(cache: ReportingCache): () => void {
    this.#caches.add(cache);
    this.#readings = [];
    return () => {
      this.#collect();
      this.#caches.delete(cache);
      this.#readings = [];
      if (this.#caches.size === 0) this.#stop();
    };
  }

  /**
   * Called for every count: a cache that was never used reports nothing. From the first on it reports every ten seconds, to
   * itself only while it is used.
   */
  begin(): void {
    if (this.#caches.size === 0 || this.#timer !== undefined) return;
    this.#hasBegun = true;
    this.#timer = this.#clock.after(REPORT_EVERY_MS, () => {
      this.#timer = undefined;
      if (this.#records.isPrivate === undefined) this.begin();
      // Failures of the store are reported by the operations themselves.
      this.write().catch(() => {});
    });
  }

  /** Whether it has reported, or is about to. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  changed(what: StateChange["what"], state: string): void {
    const last = this.#states.findLast((each) => each.what === what);
    // Each cache object on a store reports the same change.
    if (last?.state === state) return;
    const at = new Date(this.#records.now()).toISOString();
    this.#states = [...this.#states, { at, what, state }].slice(-MOST_STATES);
    this.#hasNewStates = true;
  }

  /** Changes of state that this process has seen, oldest first. */
  get states(): readonly StateChange[] {
    return this.#states;
  }

  /** What is not written yet, by minute. */
  unwritten(): ReadonlyMap<number, Activity> {
    this.#collect();
    return this.#unwritten;
  }

  write(): Promise<void> {
    return this.#serialized(() => this.#write());
  }

  /** Writes what is left, and withdraws the presence: the process ends, or its last cache does. */
  async leave(): Promise<void> {
    if (this.#caches.size > 1) return this.write();
    this.#stop();
    await this.#serialized(async () => {
      await this.#writeActivity();
      if (this.#isListed) await this.#updatePresence(undefined);
    });
  }

  /** Figures of this process now. */
  presence(): Presence {
    const at = this.#records.now();
    const now: Reading = { at, row: this.#row() };
    const last = this.#readings.at(-1);
    // A private report is made within ten seconds of a count, so in a longer pause nothing was counted.
    if (last !== undefined && at - last.at > READINGS * REPORT_EVERY_MS)
      this.#readings = [{ at: at - READINGS * REPORT_EVERY_MS, row: last.row }];
    // Others may look more often than it reports.
    if (last === undefined || at - last.at >= REPORT_EVERY_MS)
      this.#readings = [...this.#readings, now].slice(-READINGS - 1);
    const first = this.#readings[0] as Reading;
    const isFirst = first === now;
    const caches = [...this.#caches];
    return {
      id: this.id,
      host: nodeOs().hostname(),
      pid: process.pid,
      version: VERSION,
      startedAt: this.#startedAt,
      at,
      windowMs: isFirst ? Math.max(1, at - this.#startedAt) : at - first.at,
      row: (isFirst ? now.row : rowSince(now.row, first.row)) ?? [],
      heapBytes: process.memoryUsage().heapUsed,
      breaker: caches.map((cache) => cache.breaker()).find((state) => state !== "closed") ?? "closed",
      alerts: caches.flatMap((cache) => cache.alerts()).slice(0, 100),
    };
  }

  #row(): CounterRow {
    let sum: CounterRow = [];
    for (const cache of this.#caches) sum = sumOf(sum, cache.row());
    return sum;
  }

  #collect(): void {
    const minute = Math.floor(this.#records.now() / MINUTE_MS);
    for (const cache of this.#caches) {
      const activity = cache.takeActivity();
      if (activity !== undefined) this.#credit(minute, activity);
    }
  }

  #credit(minute: number, activity: Activity): void {
    const present = this.#unwritten.get(minute);
    this.#unwritten.set(minute, present === undefined ? activity : mergeActivity(present, activity));
    if (this.#unwritten.size > MAX_UNWRITTEN) this.#unwritten.delete(Math.min(...this.#unwritten.keys()));
  }

  /** Serialized, so that a write that takes long is not counted twice. */
  #serialized(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(work);
    this.#writing = done.catch(() => {});
    return done;
  }

  async #write(): Promise<void> {
    await this.#writeActivity();
    await this.#updatePresence(this.presence());
    if (!this.#hasNewStates) return;
    const states = this.#states;
    this.#hasNewStates = false;
    try {
      await this.#records.update(statesName(this.id), () => states, ACTIVITY_MS);
    } catch (error) {
      this.#hasNewStates = true;
      throw error;
    }
  }

  async #writeActivity(): Promise<void> {
    this.#collect();
    const keptMs = Math.min(ACTIVITY_MS, ...[...this.#caches].map(({ retentionMs }) => retentionMs));
    for (const [minute, activity] of [...this.#unwritten]) {
      this.#unwritten.delete(minute);
      try {
        await this.#records.update(
          activityName(minute),
          (present) => {
            const others = activityOf(present);
            return others === undefined ? activity : mergeActivity(others, activity);
          },
          keptMs,
        );
      } catch (error) {
        this.#credit(minute, activity);
        throw error;
      }
    }
  }

  async #updatePresence(own: Presence | undefined): Promise<void> {
    this.#isListed = own !== undefined;
    const { id } = this;
    const name = presenceName(Number.parseInt(id.slice(0, 2), 16) % PRESENCE_RECORDS);
    const now = this.#records.now();
    await this.#records.update(
      name,
      (present) => {
        const others = presencesOf(present).filter((each) => each.id !== id && each.at > now - PRESENCE_MS);
        return own === undefined ? others : [...others, own];
      },
      PRESENCE_MS,
    );
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#hasBegun = false;
  }
}

/** Processes in a record; nothing of a damaged one, or of another version. */
export function presencesOf(value: unknown): readonly Presence[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (each: Partial<Presence> | null) =>
      typeof each?.id === "string" &&
      typeof each.host === "string" &&
      typeof each.at === "number" &&
      Array.isArray(each.row) &&
      Array.isArray(each.alerts),
  );
}

const reports = new WeakMap<OwnRecords, ProcessReport>();

/** One per namespace, since its caches in this process are one process. */
export function reportIn(records: OwnRecords, clock: Clock): ProcessReport {
  let report = reports.get(records);
  if (report === undefined) {
    report = new ProcessReport(records, clock);
    reports.set(records, report);
  }
  return report;
}
