// One read of an entry from a shared store, for `get` or for getOrSet: all it needs on its way is in one object, since
// there is one for every read that is not answered from memory.
import type { RecordTaker } from "../backend.ts";
import type { XCacheError } from "../errors.ts";
import type { Found, ReadCallback } from "../namespace.ts";
import { GuardedCall } from "../resilience/guarded-call.ts";
import { type Met, NOT_NOW, type Present, type RecordReading, type Watched } from "./record-reading.ts";

abstract class EntryRead<R> extends GuardedCall<R> implements RecordTaker {
  protected readonly reading: RecordReading;
  protected readonly key: string;
  #asker: ReadCallback<R> | undefined;
  /** Also when its caller was told long ago: until the store has answered, it is under way. */
  #read: Watched;
  /** Whether the store was asked: until then, what fails is not the entry. */
  protected isAsked = false;

  constructor(reading: RecordReading, operation: string, key: string, asker: ReadCallback<R>) {
    super(reading.store.guard, operation);
    this.reading = reading;
    this.key = key;
    this.#asker = asker;
  }

  /** What its caller gets for a fresh value; undefined: there is none. */
  protected abstract ofFresh(value: unknown): R;

  protected abstract ofFound(found: Found | undefined): R;

  start(): void {
    this.isAsked = true;
    const { names, near, seals, store } = this.reading;
    const spelled = names.entry(this.key);
    this.#read = near?.begin(this.key, spelled);
    if (store.backend.readsStamped) store.backend.readStampedThen(spelled, seals.lineage, this);
    else store.backend.readThen(spelled, this.#read !== undefined, this);
  }

  take(record: Met, present?: Present): boolean {
    try {
      const value = this.reading.valueNow(this.key, record, this.#read, present);
      if (value === NOT_NOW) {
        this.reading.found(this.key, record, this.#read).then(
          (found) => this.succeed(this.ofFound(found)),
          (error: unknown) => this.fail(error),
        );
        return true;
      }
      this.succeed(this.ofFresh(value));
    } catch (error) {
      this.fail(error);
    }
    return false;
  }

  override fail(error: unknown): void {
    this.endRead();
    super.fail(error);
  }

  protected endRead(): void {
    this.reading.end(this.#read);
  }

  succeeded(result: R): void {
    this.#asker?.answered(result);
  }

  failed(error: XCacheError): void {
    this.#asker?.failed(error);
  }

  protected forget(): void {
    this.#asker = undefined;
  }
}

/** For `get`: a value that is fresh. */
export class ValueRead extends EntryRead<unknown> {
  protected ofFresh(value: unknown): unknown {
    return value;
  }

  protected ofFound(found: Found | undefined): unknown {
    return found?.fresh ? found.value : undefined;
  }
}

/** For getOrSet: fresh or stale. */
export class FoundRead extends EntryRead<Found | undefined> {
  protected ofFresh(value: unknown): Found | undefined {
    return value === undefined ? undefined : { value, fresh: true, expiredForMs: 0 };
  }

  protected ofFound(found: Found | undefined): Found | undefined {
    return found;
  }

  /** A load puts something better in the place of what is damaged. */
  override fail(error: unknown): void {
    if (!this.isAsked) {
      super.fail(error);
      return;
    }
    this.endRead();
    this.reading.entries.discarded(this.key, error).then(
      (isGone) => (isGone ? this.succeed(undefined) : super.fail(error)),
      (thrown) => super.fail(thrown),
    );
  }
}
