// Invalidations that the store has not confirmed: kept until it has, and sent before what they concern is asked for.
//
// Whatever has to be done again is one of two things: remove the record of a key, or write a new stamp. Both may be done
// twice without harm, so an outcome that is not known is simply a thing to be done.
import type { Backend } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../errors.ts";
import { toError } from "../events.ts";
import { isPassing } from "../resilience/store-failure.ts";
import { withDeadline } from "../resilience/with-deadline.ts";

/** What makes up for an invalidation whose outcome is not known. */
export interface PendingInvalidation {
  /** The store's key of a record to remove, or of a stamp to replace. */
  readonly key: string;
  /** How long a new stamp lives; undefined: the record is removed. */
  readonly stampMs: number | undefined;
  /** Key of the namespace stamp that covers everything the remedy could, replaced when there are too many. */
  readonly root: string;
  /** Key of another remedy that has to be carried out before this one. */
  readonly after?: string;
}

type Records = Pick<Backend, "write" | "take" | "now">;

/** Beyond this many the whole namespace is invalidated instead. */
const MOST_REMEDIES = 10_000;
const AT_ONCE = 500;

export interface OutboxOptions {
  readonly records: Records;
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  report(error: Error): void;
  /** Told of every key that is owed something: what is at hand of it counts no more. */
  owed(key: string): void;
  /** Told what the store has confirmed. */
  delivered(remedy: PendingInvalidation): void;
}

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #remedies = new Map<string, PendingInvalidation>();
  readonly #deliveries = new Map<PendingInvalidation, Promise<void>>();

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#remedies.size;
  }

  add(remedies: Iterable<PendingInvalidation>): void {
    for (const remedy of remedies) this.#owe(remedy);
    if (this.#remedies.size > MOST_REMEDIES) this.#widen(this.#remedies.values());
  }

  /**
   * Resolves when the store has confirmed what concerns these keys; rejects when it cannot be reached. undefined when
   * there is nothing.
   */
  settle(keys: readonly string[]): Promise<void> | undefined {
    if (this.#remedies.size === 0) return undefined;
    const remedies = keys.flatMap((key) => this.#remedies.get(key) ?? []);
    return remedies.length === 0 ? undefined : this.#deliverEach(remedies);
  }

  /** Tries all; one that cannot be delivered does not keep others back. */
  async deliverAll(): Promise<void> {
    const remedies = [...this.#remedies.values()];
    for (let from = 0; from < remedies.length; from += AT_ONCE) {
      await Promise.allSettled(remedies.slice(from, from + AT_ONCE).map((remedy) => this.#deliver(remedy)));
    }
  }

  async #deliverEach(remedies: readonly PendingInvalidation[]): Promise<void> {
    await Promise.all(remedies.map((remedy) => this.#deliver(remedy)));
  }

  #deliver(remedy: PendingInvalidation): Promise<void> {
    let delivery = this.#deliveries.get(remedy);
    if (delivery === undefined) {
      delivery = this.#carryOut(remedy).finally(() => this.#deliveries.delete(remedy));
      this.#deliveries.set(remedy, delivery);
    }
    return delivery;
  }

  async #carryOut(remedy: PendingInvalidation): Promise<void> {
    const before = remedy.after === undefined ? undefined : this.#remedies.get(remedy.after);
    if (before !== undefined) await this.#deliver(before);
    try {
      const { records, clock, operationTimeoutMs } = this.#options;
      await withDeadline(clock, operationTimeoutMs, deliver(remedy, records, clock), () => {
        throw new OperationTimeoutError(
          "the store did not confirm what is owed to it within operation_timeout",
        );
      });
      this.#options.delivered(remedy);
    } catch (thrown) {
      const error = toError(thrown);
      if (!isRefusal(error) || isPassing(error)) throw error;
      this.#refused(remedy, error);
      await this.settle([remedy.root]);
    }
    // Another one for the same key may have come since: that one is not done.
    if (this.#remedies.get(remedy.key) === remedy) this.#remedies.delete(remedy.key);
  }

  /** A store that answers and says no will say so again: the namespace goes instead, and if that is refused, people are told. */
  #refused(remedy: PendingInvalidation, error: Error): void {
    this.#options.report(error);
    if (this.#remedies.get(remedy.key) === remedy) this.#remedies.delete(remedy.key);
    if (remedy.key !== remedy.root) this.#widen([remedy]);
  }

  #owe(remedy: PendingInvalidation): void {
    this.#remedies.set(remedy.key, remedy);
    this.#options.owed(remedy.key);
  }

  #widen(remedies: Iterable<PendingInvalidation>): void {
    for (const { key, root } of [...remedies]) {
      this.#remedies.delete(key);
      const present = this.#remedies.get(root);
      // One that is on its way may have been carried out before what this one makes up for.
      if (present === undefined || this.#deliveries.has(present))
        this.#owe({ key: root, stampMs: Number.POSITIVE_INFINITY, root });
    }
  }
}

export async function deliver(
  { key, stampMs }: PendingInvalidation,
  records: Records,
  clock: Clock,
): Promise<void> {
  if (stampMs === undefined) await records.take(key);
  else await replaceStamp(records, clock, key, stampMs);
}

/**
 * Writes a new stamp: every entry that carries the old one is dead afterwards. A store without room for the new stamp is
 * asked to remove the old one, since a missing stamp has the same effect. Returns whether the first attempt succeeded.
 */
export async function replaceStamp(
  records: Pick<Backend, "write" | "take" | "now">,
  clock: Clock,
  key: string,
  lifetimeMs: number,
): Promise<boolean> {
  const expires = records.now() + lifetimeMs;
  try {
    await records.write({ key, record: { kind: "stamp", version: clock.token(), expires }, lifetimeMs });
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    await records.take(key);
    return false;
  }
}

/** Whether the store replied with an error, as opposed to being unreachable or late. */
export function isRefusal(error: unknown): boolean {
  return (
    error instanceof BackendError &&
    !(error instanceof ConnectionError) &&
    !(error instanceof OperationTimeoutError)
  );
}
