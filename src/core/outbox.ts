// Invalidations that the store has not confirmed: kept until it has, and sent before anything else is asked of it.
//
// Whatever has to be done again is one of two things: remove the record of a key, or write a new stamp. Both may be done
// twice without harm, so an outcome that is not known is simply a thing to be done.
import type { Backend } from "./backend.ts";
import type { Clock } from "./clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "./errors.ts";
import { toError } from "./events.ts";

/** What makes up for an invalidation whose outcome is not known. */
export interface Remedy {
  /** The store's key of a record to remove, or of a stamp to replace. */
  readonly key: string;
  /** How long a new stamp lives; undefined: the record is removed. */
  readonly stampMs: number | undefined;
  /** Key of the namespace stamp that covers everything the remedy could, replaced when there are too many. */
  readonly root: string;
}

type Records = Pick<Backend, "writeMany" | "takeMany" | "now">;

/** Beyond this many the whole namespace is invalidated instead. */
const MOST_REMEDIES = 10_000;
const AT_ONCE = 500;

export class Outbox {
  readonly #records: Records;
  readonly #clock: Clock;
  readonly #report: (error: Error) => void;
  readonly #remedies = new Map<string, Remedy>();
  #delivery: Promise<void> | undefined;

  constructor(records: Records, clock: Clock, report: (error: Error) => void) {
    this.#records = records;
    this.#clock = clock;
    this.#report = report;
  }

  get size(): number {
    return this.#remedies.size;
  }

  add(remedies: Iterable<Remedy>): void {
    for (const remedy of remedies) this.#remedies.set(remedy.key, remedy);
    if (this.#remedies.size > MOST_REMEDIES) this.#widen(this.#remedies.values());
  }

  /** Resolves when the store has confirmed everything that was here; rejects when it cannot be reached. */
  deliver(): Promise<void> {
    this.#delivery ??= this.#deliverAll().finally(() => {
      this.#delivery = undefined;
    });
    return this.#delivery;
  }

  async #deliverAll(): Promise<void> {
    while (this.#remedies.size > 0) {
      const remedies = [...this.#remedies.values()].slice(0, AT_ONCE);
      try {
        await carryOut(remedies, this.#records, this.#clock);
      } catch (thrown) {
        const error = toError(thrown);
        if (!isRefusal(error)) throw error;
        this.#refused(remedies, error);
        continue;
      }
      for (const remedy of remedies) this.#done(remedy);
    }
  }

  #done(remedy: Remedy): void {
    // Another one for the same key may have come since: it is not done.
    if (this.#remedies.get(remedy.key) === remedy) this.#remedies.delete(remedy.key);
  }

  /** A store that answers and says no will say so again: the namespace goes instead, and if that is refused, people are told. */
  #refused(remedies: readonly Remedy[], error: Error): void {
    this.#report(error);
    for (const remedy of remedies) this.#done(remedy);
    this.#widen(remedies.filter(({ key, root }) => key !== root));
  }

  #widen(remedies: Iterable<Remedy>): void {
    for (const { key, root } of [...remedies]) {
      this.#remedies.delete(key);
      this.#remedies.set(root, { key: root, stampMs: Number.POSITIVE_INFINITY, root });
    }
  }
}

/** New stamps first: a group's stamp is replaced before the stamps of its tags are removed. */
export async function carryOut(remedies: readonly Remedy[], records: Records, clock: Clock): Promise<void> {
  const stamps = remedies.flatMap(({ key, stampMs }) => (stampMs === undefined ? [] : [{ key, stampMs }]));
  if (stamps.length > 0) {
    const now = records.now();
    await records.writeMany(
      stamps.map(({ key, stampMs }) => ({
        key,
        record: { kind: "stamp", version: clock.token(), expires: now + stampMs },
        lifetimeMs: stampMs,
      })),
    );
  }
  const taken = remedies.filter(({ stampMs }) => stampMs === undefined).map(({ key }) => key);
  if (taken.length > 0) await records.takeMany(taken);
}

/** The store was there and refused. */
function isRefusal(error: Error): boolean {
  return (
    error instanceof BackendError &&
    !(error instanceof ConnectionError) &&
    !(error instanceof OperationTimeoutError)
  );
}
