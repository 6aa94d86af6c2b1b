// Shared by a cache and its namespaces: the configuration, and one store that opens and closes for all of them.
import { resolveConfig } from "../config/resolve.ts";
import type { CacheConfig, ResolvedConfig } from "../config/types.ts";
import type { AttachedFeed } from "../core/attached-feeds.ts";
import type { Clock } from "../core/clock.ts";
import { disconnectedError } from "../core/disconnected-namespace.ts";
import {
  defaultEntryOptions,
  defaultLoadOptions,
  type EntryDefaults,
  type ResolvedLoadOptions,
} from "../core/entry-options.ts";
import { OperationTimeoutError } from "../core/errors.ts";
import { nodeEvents } from "../core/lazy-builtin.ts";
import type { EntryOptions, Namespace, Store, StoreObserver } from "../core/namespace.ts";
import { toXCacheError } from "../core/resilience/store-failure.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { type CacheMetrics, metricsOf } from "../metrics/collectors/cache-metrics.ts";
import type { MetricSource } from "../metrics/collectors/source.ts";
import type { History } from "../metrics/history/history.ts";
import { openStore } from "./open-store.ts";

/** The part of operation_timeout in which a closing cache delivers what it owes; the rest is for closing the store. */
const SETTLING = 0.75;

/** A cache object that shares this lifecycle. */
export interface Member {
  readonly observer: StoreObserver;
  readonly source: MetricSource;
  /** Adds its counts to those of other processes. */
  readonly history: History;
  /** Called when the store may be used again. */
  opened(): void;
  /**
   * Called when the store may not be used any more. `wasOpen`: it could be used until now. Resolves when no other process
   * waits for its loads.
   */
  closed(wasOpen: boolean): Promise<void>;
}

export class CacheLifecycle {
  readonly config: ResolvedConfig;
  readonly clock: Clock;
  readonly store: Store;
  readonly defaults: EntryDefaults;
  /** The options of every write without options; undefined where jitter makes them differ. */
  readonly defaultEntryOptions: EntryOptions | undefined;
  readonly defaultLoadOptions: ResolvedLoadOptions | undefined;
  /** The database feeds that invalidate this cache. */
  readonly feeds = new Set<AttachedFeed>();
  /** Where it reports; undefined without metrics. */
  readonly metrics: CacheMetrics | undefined;
  /** The function that detaches each member from its metrics. */
  readonly #members = new Map<Member, (() => void) | undefined>();
  /** Created when a load asks for its signal. */
  #stopping: AbortController | undefined;
  #isOpen = true;
  /** Number of connect() calls waiting for the store. */
  #connecting = 0;
  /** Number of disconnect() calls: anything that began before the latest one is void. */
  #disconnects = 0;
  /** The latest disconnect that had something to close. */
  #closing: Promise<void> = Promise.resolve();

  constructor(config: ResolvedConfig, clock: Clock) {
    this.config = config;
    this.clock = clock;
    this.store = openStore(config, clock);
    this.defaults = { ...config, random: clock.random };
    this.defaultEntryOptions = defaultEntryOptions(this.defaults);
    this.defaultLoadOptions = defaultLoadOptions(this.defaults);
    if (config.enableMetrics && config.metrics !== undefined) this.metrics = metricsOf(config.metrics);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Aborts the in-flight loads when the cache disconnects. */
  get signal(): AbortSignal {
    this.#stopping ??= endOfCache();
    return this.#stopping.signal;
  }

  join(member: Member): void {
    this.#members.set(member, undefined);
    if (this.#isOpen) this.#admit(member);
  }

  #admit(member: Member): void {
    this.store.observers.add(member.observer);
    if (!this.config.enableMetrics) return;
    const leaving = [member.history.attach(), this.metrics?.attach(member.source)];
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
      // A closed cache that fails to open stays closed: nothing keeps retrying in the background.
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
    this.#stopping = undefined;
    stopping?.abort();
    const owed: (Promise<unknown> | undefined)[] = [added];
    for (const [member, stopReporting] of this.#members) {
      owed.push(member.closed(wasOpen));
      store.observers.delete(member.observer);
      stopReporting?.();
      this.#members.set(member, undefined);
    }
    const isLast = store.observers.size === 0;
    if (isLast) owed.push(store.settle?.());
    const limitMs = this.config.operationTimeout * 1000;
    await withDeadline(this.clock, limitMs * SETTLING, Promise.allSettled(owed), () => undefined);
    // Another cache may have joined meanwhile.
    if (!isLast || store.observers.size > 0) return;
    const left = store.disconnect().catch((error: unknown) => {
      throw toXCacheError(error, "disconnect");
    });
    await withDeadline(this.clock, limitMs * (1 - SETTLING), left, () => undefined);
  }

  /** Writes counts that are not in the store yet; undefined if there are none or the circuit is open. */
  #addHistories(): Promise<unknown> | undefined {
    if (!this.config.enableMetrics || (this.store.breaker?.state ?? "closed") !== "closed") return undefined;
    const owing = [...this.#members.keys()].filter(({ history }) => history.owes);
    if (owing.length === 0) return undefined;
    return Promise.all(owing.map(({ history }) => history.close()));
  }
}

/** A cache object's lifecycle, shared with its root, and its own namespace. */
export class CacheScope {
  readonly root: CacheLifecycle;
  readonly namespace: Namespace;
  constructor(root: CacheLifecycle, namespace: Namespace) {
    this.root = root;
    this.namespace = namespace;
  }
}

export function openScope(
  given: CacheConfig | { readonly config: CacheConfig } | undefined,
  clock: Clock,
): CacheScope {
  const wrapped =
    typeof given === "object" && given !== null && "config" in given && Object.keys(given).length === 1;
  const root = new CacheLifecycle(resolveConfig(wrapped ? given.config : given), clock);
  return new CacheScope(root, root.store.namespace(root.config.keyPrefix));
}

/** Every load and every waiter may listen to its signal: any number of them is no leak. */
function endOfCache(): AbortController {
  const controller = new AbortController();
  nodeEvents().setMaxListeners(0, controller.signal);
  return controller;
}
