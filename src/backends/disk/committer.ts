// Changes on their way to disk: those of a tick in one commit, one commit at a time, none begun after its deadline.
//
// LMDB lets one process write at a time and waits for it as long as it takes. That waiting is done by a thread of the
// pool, so a process that hangs with the lock keeps others from changing anything but not from reading, and what waits
// here is given up when its time is over.
import type { Clock, Timer } from "../../core/clock.ts";
import { ConnectionError, OperationTimeoutError } from "../../core/errors.ts";
import { type Change, issue, sizeOf } from "./change.ts";
import { commitError, isFatal } from "./disk-error.ts";
import type { Environment } from "./environment.ts";
import type { Operation, View } from "./operation.ts";
import type { Room } from "./room.ts";
import type { Facts } from "./stored-record.ts";

/** A commit is kept short: others wait for it. */
const MOST_OPERATIONS = 1_000;

interface Queued {
  readonly operation: Operation;
  readonly due: number;
  /** Somebody was told how it ended. */
  isOver: boolean;
}

interface Issued {
  readonly queued: Queued;
  readonly held: Promise<boolean> | undefined;
}

export class Committer {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #room: Room;
  #queue: Queued[] = [];
  #flying: readonly Queued[] = [];
  /** When the commit under way has taken too long. */
  #flightDue = Number.POSITIVE_INFINITY;
  #isScheduled = false;
  #timer: Timer | undefined;
  #timerDue = Number.POSITIVE_INFINITY;
  #fatal: ConnectionError | undefined;
  #isFailing = false;
  #idle: (() => void)[] = [];

  constructor(environment: Environment, clock: Clock, room: Room) {
    this.#environment = environment;
    this.#clock = clock;
    this.#room = room;
  }

  get isIdle(): boolean {
    return this.#flying.length === 0 && this.#queue.length === 0;
  }

  /** Whether the commit under way waits for a process that does not let go of the store. */
  get isStuck(): boolean {
    return this.#flying.length > 0 && this.#clock.now() >= this.#flightDue;
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
    if (this.#fatal !== undefined) {
      operation.failed(this.#fatal);
      return;
    }
    if (this.isStuck) {
      operation.failed(this.#late());
      return;
    }
    const queued = { operation, due: this.#clock.now() + limitMs, isOver: false };
    this.#queue.push(queued);
    this.#watch(queued.due);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#flying.length > 0) return;
    this.#isScheduled = true;
    // What the rest of this tick adds goes along.
    process.nextTick(() => {
      this.#isScheduled = false;
      this.#commit();
    });
  }

  #commit(): void {
    const { planned, done } = this.#plan();
    for (const queued of done) this.#settle(queued, true);
    if (planned.length === 0) {
      if (this.#queue.length > 0) this.#schedule();
      else this.#rest();
      return;
    }
    const batch = planned.map(({ queued }) => queued);
    this.#flying = batch;
    this.#flightDue = Math.max(...batch.map(({ due }) => due));
    this.#issue(planned).then(
      (issued) => this.#landed(issued),
      (error: unknown) => this.#crashed(batch, error),
    );
  }

  /** What goes into the next commit, decided by one snapshot. */
  #plan(): { readonly planned: readonly Planned[]; readonly done: readonly Queued[] } {
    const planned: Planned[] = [];
    const done: Queued[] = [];
    const now = this.#clock.now();
    this.#environment.snapshot((get) => {
      const coming = new Map<string, Facts | undefined>();
      const view: View = { now, get, coming: (key) => coming.get(key) };
      let bytes = 0;
      let taken = 0;
      for (const queued of this.#queue) {
        const { operation } = queued;
        // In the order they came: what this process changes is changed in that order.
        if (isTaken(operation, coming)) break;
        if (planned.length >= MOST_OPERATIONS || bytes >= this.#room.mostAtOnce) break;
        taken++;
        if (queued.isOver) continue;
        if (now >= queued.due) {
          this.#fail(queued, this.#late());
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
    try {
      await whole;
    } catch (error) {
      throw await causeOf(error);
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
    this.#fatal = new ConnectionError(`the store on disk takes no more changes: ${cause.message}`, {
      cause,
      hint: "Restart the process; if that does not help, stop all processes that use the folder and remove it.",
    });
    for (const queued of this.#queue) this.#fail(queued, this.#fatal);
    this.#queue = [];
  }

  #next(): void {
    this.#flying = [];
    this.#flightDue = Number.POSITIVE_INFINITY;
    if (this.#queue.length > 0 || this.#room.isOwed) this.#schedule();
    else this.#rest();
  }

  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDue = Number.POSITIVE_INFINITY;
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

  #watch(due: number): void {
    if (due >= this.#timerDue) return;
    this.#timer?.cancel();
    this.#timerDue = due;
    this.#timer = this.#clock.after(due - this.#clock.now(), () => {
      this.#timerDue = Number.POSITIVE_INFINITY;
      const now = this.#clock.now();
      const waiting = [...this.#flying, ...this.#queue].filter(({ isOver }) => !isOver);
      for (const queued of waiting) if (now >= queued.due) this.#fail(queued, this.#late());
      const left = waiting.filter(({ isOver, due }) => !isOver && due < Number.POSITIVE_INFINITY);
      if (left.length > 0) this.#watch(Math.min(...left.map(({ due }) => due)));
    });
  }

  #late(): OperationTimeoutError {
    return new OperationTimeoutError(
      "another process has kept the store on disk locked for all of operation_timeout",
      {
        hint: "A process on this store is stopped or hangs while it writes: let it go on, or end it. Reads go on.",
      },
    );
  }
}

interface Planned {
  readonly queued: Queued;
  readonly change: Change;
}

/** Whether an operation has to wait for the next commit: its record is changed in this one. */
function isTaken({ key, isWrite }: Operation, coming: ReadonlyMap<string, Facts | undefined>): boolean {
  if (key === undefined || !coming.has(key)) return false;
  return !isWrite || coming.get(key) === undefined;
}

/** The binding says only that a commit failed, and has the reason in a promise. */
async function causeOf(error: unknown): Promise<unknown> {
  const { commitError: reason } = error as { commitError?: Promise<never> };
  return reason === undefined ? error : reason.catch((cause: unknown) => cause);
}
