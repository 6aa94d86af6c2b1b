// One `set` in a shared store: a single object for its deadline, the stamps it waits for and the outcome its caller gets.

import type { XCacheError } from "../errors.ts";
import type { NamespaceStamps, StampTaker } from "../invalidation/namespace-stamps.ts";
import type { PendingInvalidation } from "../invalidation/outbox.ts";
import type { EntryOptions, WriteObserver } from "../namespace.ts";
import type { Entry, StampSet } from "../record.ts";
import { GuardedCall } from "../resilience/guarded-call.ts";
import type { Entries } from "./entries.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** What a write needs of its namespace. */
export interface WritingHost {
  readonly store: NamespaceHost;
  readonly stamps: NamespaceStamps;
  readonly entries: Entries;
  /** This process changes an entry. */
  changed(key: string): void;
  /** What is delivered later if the store turns out not to have done it. */
  removalOf(key: string): readonly PendingInvalidation[];
}

/** What is written for whom. */
export interface Writing {
  readonly key: string;
  readonly payload: Entry["payload"];
  readonly options: EntryOptions;
  readonly observer: WriteObserver | undefined;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class EntryWrite extends GuardedCall<void> implements StampTaker {
  readonly #host: WritingHost;
  /** Undefined once it is over. */
  #writing: Writing | undefined;

  constructor(host: WritingHost, writing: Writing) {
    super(host.store.guard, "set");
    this.#host = host;
    this.#writing = writing;
  }

  start(): void {
    const { options } = this.#writing as Writing;
    const lifetimeMs = options.ttlMs + options.staleMs;
    const { stamps } = this.#host;
    const present = stamps.presentNow(options.tags, lifetimeMs);
    if (present !== undefined) this.take(present);
    else stamps.presentThen(options.tags, lifetimeMs, this);
  }

  take(stamps: StampSet): void {
    // The caller timed out and the pending removal may already be delivered: a write now would bring the value back.
    if (this.isOver) return;
    const { key, payload, options } = this.#writing as Writing;
    const { entries, store } = this.#host;
    const item = entries.item(key, payload, options, stamps);
    store.backend.writeThen(
      item,
      () => this.succeed(),
      (error) => this.fail(error),
      this,
    );
  }

  succeeded(): void {
    const { key, options, observer, resolve } = this.#writing as Writing;
    const host = this.#host;
    host.changed(key);
    host.store.confirmed(() => host.removalOf(key));
    observer?.written(key, options.tags);
    resolve();
  }

  failed(error: XCacheError): void {
    const { key, observer, reject } = this.#writing as Writing;
    const host = this.#host;
    host.changed(key);
    host.store.unconfirmed(() => host.removalOf(key), error);
    reject(observer === undefined ? error : observer.notWritten(error));
  }

  protected forget(): void {
    this.#writing = undefined;
  }
}
