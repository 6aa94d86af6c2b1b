// Changes on their way to disk: those of a tick in one commit, one commit at a time, none begun after its deadline.
//
// LMDB lets one process write at a time and waits for it as long as it takes. That waiting is done by a thread of the
// pool, so a process that hangs with the lock keeps others from changing anything but not from reading, and what waits
// here is given up when its time is over.
import type { Clock } from "../../core/clock.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { Alarm } from "./alarm.ts";
import { isMade, issue, sizeOf } from "./change.ts";
import { causeOf, commitError, isFatal, lateError, noMoreChanges } from "./disk-error.ts";
import { type Environment, MOST_BYTES_AT_ONCE } from "./environment.ts";
import type { DiskEviction } from "./eviction.ts";
import type { Facts } from "./layout/stored-record.ts";
import type { Gate } from "./lock/gate.ts";
import type { Operation, View } from "./operation.ts";
import { earliestDue, isTaken, latestDue, type Planned, type Plans, type Queued } from "./queued.ts";
import { Turn } from "./turn.ts";

/** A commit is kept short: others wait for it. */
const MOST_OPERATIONS = 1_000;

interface Issued {
  readonly queued: Queued;
  readonly held: Promise<boolean> | undefined;
}

export class Committer {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #room: DiskEviction;
  readonly #limitMs: number;
  readonly #turn: Turn;
  readonly #alarm: Alarm;
  #queue: Queued[] = [];
  #flying: readonly Planned[] = [];
  /** When the commit under way has taken too long. */
  #flightDue = Number.POSITIVE_INFINITY;
  /** Whether a thread works on the commit under way. */
  #isBegun = false;
  #isScheduled = false;
  #fatal: ConnectionError | undefined;
  #isFailing = false;
  #idle: (() => void)[] = [];

  /** `limitMs`: how long a commit may take that only makes room. */
  constructor(environment: Environment, gate: Gate, clock: Clock, room: DiskEviction, limitMs: number) {
    this.#environment = environment;
    this.#clock = clock;
    this.#room = room;
    this.#limitMs = limitMs;
    this.#turn = new Turn(gate, clock);
    this.#alarm = new Alarm(clock, () => this.#giveUpLate());
  }

  get isIdle(): boolean {
    return !this.#isScheduled && !this.#turn.isAwaited && this.#flying.length + this.#queue.length === 0;
  }

  /** Whether no thread works on a commit: what is seen in the store has been made, even if LMDB has yet to tell. */
  get isAtRest(): boolean {
    if (this.#flying.length === 0 || !this.#isBegun) return true;
    return this.#environment.snapshot((get) => this.#flying.some(({ change }) => isMade(change, get)));
  }

  /** Whether a commit waits for a process that does not let go of the store, or does not come to an end of opening it. */
  get isStuck(): boolean {
    return this.#turn.isOverdue || (this.#flying.length > 0 && this.#clock.now() >= this.#flightDue);
  }

  /** Whether changes fail, or wait for another process, while reads go on. */
  get isReadOnly(): boolean {
    return this.#isFailing || this.isStuck;
  }

  /** Resolves when nothing is under way. */
  whenIdle(): Promise<void> {
    return this.isIdle ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Tells the operation how it ended, within so many milliseconds. */
  add(operation: Operation, limitMs: number): void {
    const refusal = this.#fatal ?? (this.isStuck ? lateError() : undefined);
    if (refusal !== undefined) {
      operation.failed(refusal);
      return;
    }
    const queued = { operation, due: this.#clock.now() + limitMs, isOver: false };
    this.#queue.push(queued);
    this.#alarm.set(queued.due);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#turn.isAwaited || this.#flying.length > 0) return;
    this.#isScheduled = true;
    // What the rest of this tick adds goes along.
    process.nextTick(() => {
      this.#isScheduled = false;
      // Who was told of a failure while this was planned may have begun another one, which follows when this one ends.
      if (this.#flying.length === 0) this.#commit();
    });
  }

  #commit(): void {
    if (!this.#hasTurn()) return;
    const { planned, done } = this.#planned();
    for (const queued of done) this.#settle(queued, true);
    if (planned.length === 0) {
      this.#turn.end();
      if (this.#queue.length > 0) this.#schedule();
      else this.#rest();
      return;
    }
    const batch = planned.map(({ queued }) => queued);
    this.#flying = planned;
    this.#flightDue = latestDue(batch) ?? this.#clock.now() + this.#limitMs;
    this.#issue(planned).then(
      (issued) => this.#landed(issued),
      (error: unknown) => this.#crashed(batch, error),
    );
  }

  /** Whether nobody opens the store; otherwise this commit begins later. */
  #hasTurn(): boolean {
    try {
      const due = this.#queue[0]?.due ?? this.#clock.now() + this.#limitMs;
      return this.#turn.begin(due, () => this.#commit());
    } catch (thrown) {
      this.#isFailing = true;
      this.#giveUp(this.#queue, thrown);
      if (this.#queue.length === 0) this.#rest();
      return false;
    }
  }

  /** As `#plan`; where the store cannot be read, whoever waits is told. */
  #planned(): Plans {
    const waiting = this.#queue;
    try {
      return this.#plan();
    } catch (thrown) {
      this.#giveUp(waiting, thrown);
      return { planned: [], done: [] };
    }
  }

  #giveUp(waiting: readonly Queued[], thrown: unknown): void {
    this.#queue = [];
    const error = commitError(thrown, this.#environment.path);
    for (const queued of waiting) this.#fail(queued, error);
  }

  /** What goes into the next commit, decided by one snapshot. */
  #plan(): Plans {
    const planned: Planned[] = [];
    const done: Queued[] = [];
    const now = this.#clock.now();
    this.#environment.snapshot((get) => {
      const coming = new Map<string, Facts | undefined>();
      let bytesRead = 0;
      const view: View = {
        now,
        get: (key) => {
          const present = get(key);
          bytesRead += present?.length ?? 0;
          return present;
        },
        coming: (key) => coming.get(key),
      };
      let bytes = 0;
      let taken = 0;
      for (const queued of this.#queue) {
        const { operation } = queued;
        // In the order they came: what this process changes is changed in that order.
        if (isTaken(operation, coming)) break;
        if (planned.length >= MOST_OPERATIONS || bytes >= this.#room.mostAtOnce) break;
        if (bytesRead >= MOST_BYTES_AT_ONCE) break;
        taken++;
        if (queued.isOver) continue;
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
          if (operation.key !== undefined) coming.set(operation.key, plan.leaves);
        }
      }
      this.#queue = this.#queue.slice(taken);
      for (const operation of this.#room.make(bytes, (key) => coming.has(key), get)) {
        const { change } = operation.plan();
        const queued = { operation, due: Number.POSITIVE_INFINITY, isOver: false };
        if (change !== undefined) planned.push({ queued, change });
      }
    });
    return { planned, done };
  }

  #decide(queued: Queued, view: View): ReturnType<Operation["plan"]> | undefined {
    try {
      return queued.operation.plan(view);
    } catch (error) {
      this.#fail(queued, error);
      return undefined;
    }
  }

  async #issue(planned: readonly Planned[]): Promise<readonly Issued[]> {
    const issued: Issued[] = [];
    const { store } = this.#environment;
    const whole = store.batch(() => {
      for (const { queued, change } of planned) {
        const held = issue(store, change);
        // All of them fail when the commit does, which is told once.
        held?.catch(() => {});
        issued.push({ queued, held });
      }
    });
    // The binding begins at the end of this turn, just before.
    setImmediate(() => {
      this.#isBegun = true;
    });
    try {
      await whole;
    } catch (error) {
      throw await causeOf(error);
    } finally {
      this.#turn.end();
    }
    return issued;
  }

  async #landed(issued: readonly Issued[]): Promise<void> {
    const again: Queued[] = [];
    this.#isFailing = false;
    for (const { queued, held } of issued) {
      const isHeld = held === undefined || (await held);
      if (!this.#settle(queued, isHeld)) again.push(queued);
    }
    this.#queue = [...again, ...this.#queue];
    this.#next();
  }

  #crashed(batch: readonly Queued[], thrown: unknown): void {
    const error = commitError(thrown, this.#environment.path);
    this.#isFailing = true;
    for (const queued of batch) this.#fail(queued, error);
    if (isFatal(thrown)) this.#break(error);
    this.#next();
  }

  /** Nothing more is asked of LMDB but reads. */
  #break(cause: Error): void {
    this.#fatal = noMoreChanges(cause);
    for (const queued of this.#queue) this.#fail(queued, this.#fatal);
    this.#queue = [];
  }

  #next(): void {
    this.#flying = [];
    this.#isBegun = false;
    this.#flightDue = Number.POSITIVE_INFINITY;
    if (this.#queue.length > 0 || (this.#room.isOwed && this.#fatal === undefined)) this.#schedule();
    else this.#rest();
  }

  #rest(): void {
    this.#alarm.cancel();
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  /** Returns false where the operation has to be decided again. */
  #settle(queued: Queued, held: boolean): boolean {
    if (queued.isOver) return true;
    queued.isOver = queued.operation.committed(held);
    return queued.isOver;
  }

  #fail(queued: Queued, error: unknown): void {
    if (queued.isOver) return;
    queued.isOver = true;
    queued.operation.failed(error);
  }

  /** Tells those whose time is over. Returns when the next one's will be. */
  #giveUpLate(): number {
    const now = this.#clock.now();
    const waiting = [...this.#flying.map(({ queued }) => queued), ...this.#queue];
    for (const queued of waiting) if (now >= queued.due) this.#fail(queued, lateError());
    return earliestDue(waiting);
  }
}
