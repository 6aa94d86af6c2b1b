// What a cache and its namespaces share: the configuration, and one store that opens and closes for all of them.
import { resolveConfig } from "../config/resolve.ts";
import type { CacheConfig, ResolvedConfig } from "../config/types.ts";
import type { Clock } from "../core/clock.ts";
import { disconnectedError } from "../core/disconnected-namespace.ts";
import { defaultEntryOptions, type EntryDefaults } from "../core/entry-options.ts";
import { OperationTimeoutError } from "../core/errors.ts";
import type { EntryOptions, Namespace, Store, StoreObserver } from "../core/namespace.ts";
import { toXCacheError } from "../core/resilience/store-failure.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { type CacheMetrics, metricsOf } from "../metrics/collectors/cache-metrics.ts";
import type { MetricSource } from "../metrics/collectors/source.ts";
import type { History } from "../metrics/history/history.ts";
import { openStore } from "./open-store.ts";

/** A cache object of the family. */
export interface Member {
  readonly observer: StoreObserver;
  /** What it tells its metrics. */
  readonly source: MetricSource;
  /** Adds its counts to those of other processes. */
  readonly history: History;
  /** It may use the store again. */
  opened(): void;
  /** It may not use the store any more. `wasOpen`: until now it could. */
  closed(wasOpen: boolean): void;
}

export class CacheLifecycle {
  readonly config: ResolvedConfig;
  readonly clock: Clock;
  readonly store: Store;
  readonly defaults: EntryDefaults;
  /** The terms of a write without options; undefined where each has its own. */
  readonly usualTerms: EntryOptions | undefined;
  readonly #metrics: CacheMetrics | undefined;
  /** How each member stops reporting. */
  readonly #members = new Map<Member, (() => void) | undefined>();
  #stopping = new AbortController();
  #isOpen = true;
  /** How many calls of connect() wait for the store. */
  #connecting = 0;
  /** How often disconnect() was called: whatever was begun before the latest call is over. */
  #disconnects = 0;
  /** The latest disconnect that had something to close. */
  #closing: Promise<void> = Promise.resolve();

  constructor(config: ResolvedConfig, clock: Clock) {
    this.config = config;
    this.clock = clock;
    this.store = openStore(config, clock);
    this.defaults = { ...config, random: clock.random };
    this.usualTerms = defaultEntryOptions(this.defaults);
    if (config.enableMetrics && config.metrics !== undefined) this.#metrics = metricsOf(config.metrics);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Aborts for the loads that are under way when the cache disconnects. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  join(member: Member): void {
    this.#members.set(member, undefined);
    if (this.#isOpen) this.#admit(member);
  }

  #admit(member: Member): void {
    this.store.observers.add(member.observer);
    if (!this.config.enableMetrics) return;
    const leaving = [member.history.attach(), this.#metrics?.attach(member.source)];
    this.#members.set(member, () => {
      for (const leave of leaving) leave?.();
    });
  }

  async connect(): Promise<void> {
    const disconnects = this.#disconnects;
    await this.#closing.catch(() => {});
    if (disconnects === this.#disconnects) await this.#open();
    if (disconnects !== this.#disconnects) throw disconnectedError();
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (const member of this.#members.keys()) {
      this.#admit(member);
      member.opened();
    }
  }

  disconnect(): Promise<void> {
    this.#disconnects++;
    if (this.#isOpen || this.#connecting > 0) this.#closing = this.#close();
    return this.#closing;
  }

  async #open(): Promise<void> {
    const limit = this.config.connectTimeout;
    this.#connecting++;
    try {
      const connected = this.store.connect().catch((error: unknown) => {
        throw toXCacheError(error, "connect");
      });
      await withDeadline(this.clock, limit * 1000, connected, () => {
        throw new OperationTimeoutError(
          `the store did not accept a connection within connect_timeout (${limit} s)`,
          { operation: "connect" },
        );
      });
    } catch (error) {
      // A closed cache that does not open stays closed: nothing goes on trying.
      if (!this.#isOpen && this.store.observers.size === 0) this.store.disconnect().catch(() => {});
      throw error;
    } finally {
      this.#connecting--;
    }
  }

  async #close(): Promise<void> {
    const { store } = this;
    const added = this.#addHistories();
    const [wasOpen, stopping] = [this.#isOpen, this.#stopping];
    this.#isOpen = false;
    this.#stopping = new AbortController();
    stopping.abort();
    for (const [member, stopReporting] of this.#members) {
      store.observers.delete(member.observer);
      member.closed(wasOpen);
      stopReporting?.();
      this.#members.set(member, undefined);
    }
    if (store.observers.size > 0) return;
    const halfMs = (this.config.operationTimeout * 1000) / 2;
    if (added !== undefined) await withDeadline(this.clock, halfMs, added, () => undefined);
    const left = store.disconnect().catch((error: unknown) => {
      throw toXCacheError(error, "disconnect");
    });
    await withDeadline(this.clock, halfMs, left, () => undefined);
  }

  /** What was counted and not told yet; undefined when there is nothing, or nobody to tell. */
  #addHistories(): Promise<unknown> | undefined {
    if (!this.config.enableMetrics || (this.store.breaker?.state ?? "closed") !== "closed") return undefined;
    const late = [...this.#members.keys()].filter(({ history }) => history.isLate);
    if (late.length === 0) return undefined;
    return Promise.all(late.map(({ history }) => history.add().catch(() => {})));
  }
}

/** Where a cache object stands: what it shares with its root, and its own part of the store. */
export class Place {
  readonly root: CacheLifecycle;
  readonly space: Namespace;
  constructor(root: CacheLifecycle, space: Namespace) {
    this.root = root;
    this.space = space;
  }
}

export function openPlace(
  given: CacheConfig | { readonly config: CacheConfig } | undefined,
  clock: Clock,
): Place {
  const wrapped =
    typeof given === "object" && given !== null && "config" in given && Object.keys(given).length === 1;
  const root = new CacheLifecycle(resolveConfig(wrapped ? given.config : given), clock);
  return new Place(root, root.store.namespace(root.config.keyPrefix));
}
