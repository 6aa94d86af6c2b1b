// Invalidations that the store has not acknowledged: retried until it has, and sent before the keys they affect are used.
//
// A pending invalidation either removes the record of a key or writes a new stamp. Both are idempotent, so an unknown
// outcome is simply retried.
import type { Backend } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../errors.ts";
import { toError } from "../events.ts";
import { repeatWhileLost } from "../resilience/repeat-lost.ts";
import { isTransient } from "../resilience/store-failure.ts";
import { withDeadline } from "../resilience/with-deadline.ts";

/** An invalidation whose outcome is unknown, as an operation that can be repeated. */
export interface PendingInvalidation {
  /** The store's key of a record to remove, or of a stamp to replace. */
  readonly key: string;
  /** Lifetime of the new stamp; undefined: the record is removed. */
  readonly stampMs: number | undefined;
  /** Key of the root namespace stamp, replaced instead when too many invalidations are pending. */
  readonly root: string;
  /** Key of a pending invalidation that must be delivered before this one. */
  readonly after?: string;
  /** It was delivered before, to a store where an older write may have taken effect since. */
  readonly isRepeated?: true;
}

type Records = Pick<Backend, "write" | "take" | "now">;

/** Beyond this many the whole namespace is invalidated instead. */
const MAX_PENDING = 10_000;
const BATCH_SIZE = 500;

export interface OutboxOptions {
  readonly records: Records;
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** See Backend. */
  isTransferring(): boolean;
  report(error: Error): void;
  /** Called with every key that becomes pending: local copies of it are no longer valid. */
  onPending(key: string): void;
  /** Called when the store has acknowledged an invalidation. */
  onDelivered(invalidation: PendingInvalidation): void;
  /** When a delivered invalidation becomes pending once more; see Capabilities.fenced. Default: never. */
  readonly repeatAfterMs?: number | undefined;
  /** Called when it does. */
  onRepeated?(): void;
}

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #pending = new Map<string, PendingInvalidation>();
  readonly #deliveries = new Map<PendingInvalidation, Promise<void>>();

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#pending.size;
  }

  add(pending: Iterable<PendingInvalidation>): void {
    for (const invalidation of pending) this.#enqueue(invalidation);
    if (this.#pending.size > MAX_PENDING) this.#widen(this.#pending.values());
  }

  /**
   * Delivers what is pending for these keys: resolves when the store has acknowledged it, rejects when the store cannot
   * be reached. undefined when nothing is pending.
   */
  flush(keys: readonly string[]): Promise<void> | undefined {
    if (this.#pending.size === 0) return undefined;
    const pending = keys.flatMap((key) => this.#pending.get(key) ?? []);
    return pending.length === 0 ? undefined : this.#deliverEach(pending);
  }

  /** Tries all until a whole batch fails; a single failure does not hold up the others. Returns whether any succeeded. */
  async deliverAll(): Promise<boolean> {
    const pending = [...this.#pending.values()];
    for (let from = 0; from < pending.length; from += BATCH_SIZE) {
      const batch = pending.slice(from, from + BATCH_SIZE);
      const outcomes = await Promise.allSettled(batch.map((invalidation) => this.#deliver(invalidation)));
      if (outcomes.every(({ status }) => status === "rejected")) return from > 0;
    }
    return pending.length > 0;
  }

  async #deliverEach(pending: readonly PendingInvalidation[]): Promise<void> {
    await Promise.all(pending.map((invalidation) => this.#deliver(invalidation)));
  }

  #deliver(invalidation: PendingInvalidation): Promise<void> {
    let delivery = this.#deliveries.get(invalidation);
    if (delivery === undefined) {
      delivery = this.#attempt(invalidation).finally(() => this.#deliveries.delete(invalidation));
      this.#deliveries.set(invalidation, delivery);
    }
    return delivery;
  }

  async #attempt(invalidation: PendingInvalidation): Promise<void> {
    const before = invalidation.after === undefined ? undefined : this.#pending.get(invalidation.after);
    if (before !== undefined) await this.#deliver(before);
    try {
      await this.#send(invalidation);
      this.#options.onDelivered(invalidation);
      if (invalidation.isRepeated !== true) this.#repeatLater(invalidation);
    } catch (thrown) {
      const error = toError(thrown);
      if (!isRefusal(error) || isTransient(error)) throw error;
      this.#refused(invalidation, error);
      await this.flush([invalidation.root]);
    }
    // A newer invalidation of the same key may have been added since; it stays pending.
    if (this.#pending.get(invalidation.key) === invalidation) this.#pending.delete(invalidation.key);
  }

  /** Calls wait for it, so it is sent again whenever its connection is lost. */
  #send(invalidation: PendingInvalidation): Promise<void> {
    const { records, clock, operationTimeoutMs, isTransferring: isSuspended } = this.#options;
    return repeatWhileLost(clock, operationTimeoutMs, (due) =>
      withDeadline(clock, due - clock.now(), deliver(invalidation, records, clock), late, { isSuspended }),
    );
  }

  #repeatLater(invalidation: PendingInvalidation): void {
    const { clock, repeatAfterMs, onRepeated } = this.#options;
    if (repeatAfterMs === undefined) return;
    clock.after(repeatAfterMs, () => {
      if (this.#pending.has(invalidation.key)) return;
      this.add([{ ...invalidation, isRepeated: true }]);
      onRepeated?.();
    });
  }

  /** A store that rejects an invalidation would reject it again: the root namespace is invalidated instead. */
  #refused(invalidation: PendingInvalidation, error: Error): void {
    this.#options.report(error);
    if (this.#pending.get(invalidation.key) === invalidation) this.#pending.delete(invalidation.key);
    if (invalidation.key !== invalidation.root) this.#widen([invalidation]);
  }

  #enqueue(invalidation: PendingInvalidation): void {
    this.#pending.set(invalidation.key, invalidation);
    this.#options.onPending(invalidation.key);
  }

  #widen(pending: Iterable<PendingInvalidation>): void {
    for (const { key, root } of [...pending]) {
      this.#pending.delete(key);
      const present = this.#pending.get(root);
      // One that is in flight may take effect before the write that this one has to undo.
      if (present === undefined || this.#deliveries.has(present))
        this.#enqueue({ key: root, stampMs: Number.POSITIVE_INFINITY, root });
    }
  }
}

const late = (): never => {
  throw new OperationTimeoutError("pending invalidations were not acknowledged within operation_timeout");
};

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
