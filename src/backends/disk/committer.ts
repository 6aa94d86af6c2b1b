// Commits changes to disk: those of a tick together, one commit at a time, none started after its deadline.
//
// LMDB lets one process write at a time and waits for its lock without a limit. A thread of the pool does that waiting,
// so a process that hangs while holding the lock blocks the writes of others but not their reads, and operations queued
// here fail at their deadline.
import { outsideCallers } from "../../core/async-context.ts";
import type { Clock } from "../../core/clock.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { Alarm } from "./alarm.ts";
import { type Condition, isMade, issue, make, sizeOf } from "./change.ts";
import { commitMark, noCommitSince } from "./commit-mark.ts";
import { causeOf, commitError, isFatal, lateError, noMoreChanges } from "./disk-error.ts";
import { type Environment, MOST_BYTES_AT_ONCE } from "./environment.ts";
import type { DiskEviction } from "./eviction.ts";
import type { DiskKey } from "./layout/disk-key.ts";
import { metaIn, type RecordMeta } from "./layout/stored-record.ts";
import type { Gate } from "./lock/gate.ts";
import type { Operation, View } from "./operation.ts";
import { earliestDue, latestDue, mustWait, type Planned, type Plans, type Queued } from "./queued.ts";
import { Turn } from "./turn.ts";

/** Keeps commits short: other processes wait for the lock. */
const MOST_OPERATIONS = 1_000;
/** From how many operations on a commit that follows none takes half of them. */
const FEWEST_TO_HALVE = 16;
/** Commits without a condition after one whose condition did not hold: other processes are writing too. */
const UNCONDITIONAL = 16;

interface Issued {
  readonly queued: Queued;
  readonly held: Promise<boolean> | undefined;
}

interface Batch {
  readonly issued: readonly Issued[];
  /** Whether the condition of the batch held. */
  readonly isHeld: boolean;
}

export class Committer {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #eviction: DiskEviction;
  readonly #limitMs: number;
  readonly #turn: Turn;
  readonly #alarm: Alarm;
  #queue: Queued[] = [];
  #inFlight: readonly Planned[] = [];
  /** When the current commit has taken too long. */
  #inFlightDue = Number.POSITIVE_INFINITY;
  #isScheduled = false;
  /** Commits until the next one with a condition. */
  #unconditional = 0;
  #fatal: ConnectionError | undefined;
  #isFailing = false;
  #idle: (() => void)[] = [];

  /** `limitMs`: the deadline of a commit that only evicts. */
  constructor(environment: Environment, gate: Gate, clock: Clock, eviction: DiskEviction, limitMs: number) {
    this.#environment = environment;
    this.#clock = clock;
    this.#eviction = eviction;
    this.#limitMs = limitMs;
    this.#turn = new Turn(gate, clock);
    this.#alarm = new Alarm(clock, () => this.#failLate());
  }

  get isIdle(): boolean {
    return !this.#isScheduled && !this.#turn.isAwaited && this.#inFlight.length + this.#queue.length === 0;
  }

  /** Whether no thread works on a commit. A change visible in the store is committed, even if LMDB has not reported it yet. */
  get isAtRest(): boolean {
    if (this.#inFlight.length === 0) return true;
    return this.#environment.snapshot((get) => this.#inFlight.some(({ change }) => isMade(change, get)));
  }

  /** Whether a commit waits past its deadline for a process that holds the write lock or hangs while opening the store. */
  get isStuck(): boolean {
    return this.#turn.isOverdue || (this.#inFlight.length > 0 && this.#clock.now() >= this.#inFlightDue);
  }

  /** Whether changes fail or wait for another process while reads still work. */
  get isReadOnly(): boolean {
    return this.#isFailing || this.isStuck;
  }

  /** Resolves when nothing is queued or being committed. */
  whenIdle(): Promise<void> {
    return this.isIdle ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Calls `committed` or `failed` of the operation within `limitMs`. */
  add(operation: Operation, limitMs: number): void {
    const refusal = this.#fatal ?? (this.isStuck ? lateError() : undefined);
    if (refusal !== undefined) {
      operation.failed(refusal);
      return;
    }
    const queued = { operation, due: this.#clock.now() + limitMs, isSettled: false };
    this.#queue.push(queued);
    this.#alarm.set(queued.due);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#turn.isAwaited || this.#inFlight.length > 0) return;
    this.#isScheduled = true;
    // Includes what the rest of this tick adds.
    process.nextTick(outsideCallers, () => {
      this.#isScheduled = false;
      // A failure callback may have started another commit meanwhile; this one then follows it.
      if (this.#inFlight.length === 0) this.#commit(this.#half());
    });
  }

  /**
   * Callers that write in a loop all wait for the same commit, and LMDB's thread for them. With half of them in each commit, one
   * half goes on while the other half is committed. A commit that waits for the disk takes as long with half of them.
   */
  #half(): number {
    const { length } = this.#queue;
    if (this.#environment.isSynced || length < FEWEST_TO_HALVE) return MOST_OPERATIONS;
    return Math.min(length / 2, MOST_OPERATIONS);
  }

  #commit(most = MOST_OPERATIONS): void {
    if (!this.#hasTurn()) return;
    const { planned, done, condition } = this.#planned(most);
    for (const queued of done) this.#settle(queued, true);
    if (planned.length === 0) {
      this.#turn.end();
      if (this.#queue.length > 0) this.#schedule();
      else this.#idleNow();
      return;
    }
    const batch = planned.map(({ queued }) => queued);
    this.#inFlight = planned;
    this.#inFlightDue = latestDue(batch) ?? this.#clock.now() + this.#limitMs;
    this.#issue(planned, condition).then(
      (made) => this.#committed(made),
      (error: unknown) => this.#commitFailed(batch, error),
    );
  }

  /** Whether no process is opening the store; otherwise the commit is retried later. */
  #hasTurn(): boolean {
    try {
      const due = this.#queue[0]?.due ?? this.#clock.now() + this.#limitMs;
      return this.#turn.begin(due, () => this.#commit());
    } catch (thrown) {
      this.#isFailing = true;
      this.#failAll(this.#queue, thrown);
      if (this.#queue.length === 0) this.#idleNow();
      return false;
    }
  }

  /** As `#plan`; if the store cannot be read, all queued operations fail. */
  #planned(most: number): Plans {
    const waiting = this.#queue;
    try {
      return this.#plan(most);
    } catch (thrown) {
      this.#failAll(waiting, thrown);
      return { planned: [], done: [], condition: undefined };
    }
  }

  #failAll(waiting: readonly Queued[], thrown: unknown): void {
    this.#queue = [];
    const error = commitError(thrown, this.#environment.path);
    for (const queued of waiting) this.#fail(queued, error);
  }

  /** Plans the next commit from one snapshot. */
  #plan(most: number): Plans {
    const planned: Planned[] = [];
    const done: Queued[] = [];
    const now = this.#clock.now();
    let condition: Condition | undefined;
    this.#environment.snapshot((get) => {
      condition = this.#condition(get);
      const pendingWrite = new Map<string, RecordMeta | undefined>();
      let bytesRead = 0;
      const view: View = {
        now,
        keepsRows: condition !== undefined,
        get: (key) => {
          const present = get(key);
          bytesRead += present?.length ?? 0;
          return present;
        },
        meta: (key) =>
          this.#environment.inspectWithin(key, (bytes, size) => {
            bytesRead += size;
            return metaIn(bytes, size);
          }),
        pendingWrite: (key) => pendingWrite.get(key),
      };
      let bytes = 0;
      let taken = 0;
      for (const queued of this.#queue) {
        const { operation } = queued;
        // Strictly in order: the changes of this process must not be reordered.
        if (mustWait(operation, pendingWrite)) break;
        if (planned.length >= most || bytes >= this.#eviction.maxBatchBytes) break;
        if (bytesRead >= MOST_BYTES_AT_ONCE) break;
        taken++;
        if (queued.isSettled) continue;
        if (now >= queued.due) {
          this.#fail(queued, lateError());
          continue;
        }
        const plan = this.#decide(queued, view);
        if (plan === undefined) continue;
        if (plan.change === undefined) done.push(queued);
        else {
          planned.push({ queued, change: plan.change });
          bytes += sizeOf(plan.change);
          if (operation.key !== undefined) pendingWrite.set(operation.key, plan.result);
        }
      }
      this.#queue = this.#queue.slice(taken);
      for (const operation of this.#eviction.plan(bytes, (key) => pendingWrite.has(key), get)) {
        const { change } = operation.plan();
        const queued = { operation, due: Number.POSITIVE_INFINITY, isSettled: false };
        if (change !== undefined) planned.push({ queued, change });
      }
    });
    return { planned, done, condition };
  }

  /**
   * The condition of a whole commit, so that its writes may keep the rows of what they replace. All of it fails together:
   * writes must not be reordered. Other operations have conditions of their own.
   */
  #condition(get: (key: DiskKey) => Buffer | undefined): Condition | undefined {
    if (this.#unconditional > 0) {
      this.#unconditional--;
      return undefined;
    }
    return this.#queue.every(({ operation }) => operation.isWrite) ? noCommitSince(get) : undefined;
  }

  #decide(queued: Queued, view: View): ReturnType<Operation["plan"]> | undefined {
    try {
      return queued.operation.plan(view);
    } catch (error) {
      this.#fail(queued, error);
      return undefined;
    }
  }

  async #issue(planned: readonly Planned[], condition: Condition | undefined): Promise<Batch> {
    const issued: Issued[] = [];
    const { store } = this.#environment;
    const changes = () => {
      for (const { queued, change } of planned) {
        const held = issue(store, change);
        // All reject when the commit fails; that is reported once, below.
        held?.catch(() => {});
        issued.push({ queued, held });
      }
    };
    let wholeHeld: Promise<boolean> | undefined;
    const whole = store.batch(() => {
      if (condition === undefined) changes();
      else wholeHeld = store.ifVersion(condition.key, condition.version, changes);
      wholeHeld?.catch(() => {});
    });
    // Outside of the condition: no transaction may be empty. Outside of the batch: the binding starts the commit with it, and
    // not at the end of this turn, so that a thread commits while the callers of the commit before go on.
    make(store, commitMark(this.#clock.token()));
    try {
      await whole;
      return { issued, isHeld: (await wholeHeld) ?? true };
    } catch (error) {
      throw await causeOf(error);
    } finally {
      this.#turn.end();
    }
  }

  async #committed({ issued, isHeld }: Batch): Promise<void> {
    const again: Queued[] = [];
    this.#isFailing = false;
    if (!isHeld) this.#unconditional = UNCONDITIONAL;
    // The next commit begins before those who wait for this one go on, unless something has to be planned again before it, or
    // what they write can share its wait for the disk.
    const isNext =
      isHeld &&
      !this.#environment.isSynced &&
      this.#queue.length > 0 &&
      issued.every(({ held }) => held === undefined);
    if (isNext) {
      this.#ended();
      this.#commit();
    }
    for (const { queued, held } of issued) {
      if (!isHeld && queued.operation.isWrite) again.push(queued);
      else if (!this.#settle(queued, held === undefined ? isHeld : await held)) again.push(queued);
    }
    if (isNext) return;
    this.#queue = [...again, ...this.#queue];
    this.#next();
  }

  #commitFailed(batch: readonly Queued[], thrown: unknown): void {
    const error = commitError(thrown, this.#environment.path);
    this.#isFailing = true;
    for (const queued of batch) this.#fail(queued, error);
    if (isFatal(thrown)) this.#break(error);
    this.#next();
  }

  /** From now on only reads are sent to LMDB. */
  #break(cause: Error): void {
    this.#fatal = noMoreChanges(cause);
    for (const queued of this.#queue) this.#fail(queued, this.#fatal);
    this.#queue = [];
  }

  #ended(): void {
    this.#inFlight = [];
    this.#inFlightDue = Number.POSITIVE_INFINITY;
  }

  #next(): void {
    this.#ended();
    if (this.#queue.length > 0 || (this.#eviction.hasBacklog && this.#fatal === undefined)) this.#schedule();
    else this.#idleNow();
  }

  #idleNow(): void {
    this.#alarm.cancel();
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  /** Returns false if the operation must be planned again. */
  #settle(queued: Queued, held: boolean): boolean {
    if (queued.isSettled) return true;
    queued.isSettled = queued.operation.committed(held);
    return queued.isSettled;
  }

  #fail(queued: Queued, error: unknown): void {
    if (queued.isSettled) return;
    queued.isSettled = true;
    queued.operation.failed(error);
  }

  /** Fails operations past their deadline. Returns the next deadline. */
  #failLate(): number {
    const now = this.#clock.now();
    const waiting = [...this.#inFlight.map(({ queued }) => queued), ...this.#queue];
    for (const queued of waiting) if (now >= queued.due) this.#fail(queued, lateError());
    return earliestDue(waiting);
  }
}
