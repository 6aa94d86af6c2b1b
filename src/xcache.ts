// class XCache: the cache's operations, on top of store, loader, configuration and metrics.

import type { Advice } from "./advice/advice.ts";
import { DecisionLog } from "./cache/decision-log.ts";
import {
  type EntryInfo,
  type EntryPage,
  type EntryScanOptions,
  inspected,
  requireScanOptions,
  scanPages,
} from "./cache/entry-pages.ts";
import { type CacheInside, insideOf, offerInside } from "./cache/inside.ts";
import { Instruments } from "./cache/instruments.ts";
import { explainKey } from "./cache/key-explanation.ts";
import { type CacheLifecycle, CacheScope, openScope } from "./cache/lifecycle.ts";
import { FindCallback, GetCallback, ObservedGetCallback } from "./cache/store-read.ts";
import { configFromEnv } from "./config/env.ts";
import type { CacheConfig, ResolvedTable } from "./config/types.ts";
import { configFromYaml } from "./config/yaml.ts";
import {
  type ActivityOptions,
  requireActivityOptions,
  requireDistinctKeys,
  requireEntries,
  requireKeys,
  requireListener,
  requireOptions,
  requireSignal,
  requireStatsOptions,
  requireValue,
  type StatsOptions,
} from "./core/arguments.ts";
import { offerFeedHost } from "./core/attached-feeds.ts";
import { systemClock } from "./core/clock.ts";
import { debugLog } from "./core/debug.ts";
import { disconnectedError, disconnectedNamespace } from "./core/disconnected-namespace.ts";
import {
  allowHits,
  type ResolvedLoadOptions,
  requireLoad,
  resolveLoadOptions,
  resolveSetOptions,
} from "./core/entry-options.ts";
import { ConfigError } from "./core/errors.ts";
import type { CacheEvent, Listener } from "./core/events.ts";
import { areChecked, callerIn, offerFunctionRecords } from "./core/function-record.ts";
import { glob } from "./core/glob/glob.ts";
import { requireKey, requireNamespace, requireTags } from "./core/keys.ts";
import { type CallStart, Loader } from "./core/loading/loader.ts";
import type { StoreLookup } from "./core/loading/waiting-call.ts";
import type { Inspection, Namespace } from "./core/namespace.ts";
import type { GetOrSetOptions, Load, LoadAs, SetOptions } from "./core/options.ts";
import type {
  CacheStats,
  ComprehensiveMetrics,
  DetailedHealth,
  FleetActivity,
  FleetStats,
  HealthResult,
  KeyExplanation,
} from "./core/stats.ts";
import { offerPeek } from "./core/sync-peek.ts";
import { checkHealth, detailHealth } from "./health/health.ts";
import { CountedLoad, type Telemetry } from "./metrics/recording/telemetry.ts";
import {
  isGetHitTraced,
  isGetTraced,
  isLoadHitTraced,
  isLoadTraced,
  isSetTraced,
  traceForLog,
} from "./metrics/tracing.ts";
import type { FuzzyMatch, FuzzyOptions } from "./search/fuzzy.ts";

const DONE = Promise.resolve();
/** An async function creates its promise faster than Promise.resolve does. */
const answered = async <T>(value: T): Promise<T> => value;

export interface ScanOptions {
  /** Stops the scan when it aborts. */
  readonly signal?: AbortSignal;
}

/**
 * An async cache. Direct operations throw typed errors when the store fails; getOrSet and the wrappers run the function
 * instead. Methods are not bound: pass `(key) => cache.get(key)`, not `cache.get`.
 *
 * @example
 * ```ts
 * const cache = new XCache({ kvUrl: "redis://localhost:6379/0", defaultTtl: "5m" });
 * const user = await cache.getOrSet("user:1", () => fetchUser(1), { tags: ["users"] });
 * await cache.invalidateTags("users");
 * await cache.disconnect();
 * ```
 */
export class XCache implements AsyncDisposable {
  readonly #root: CacheLifecycle;
  readonly #telemetry: Telemetry;
  readonly #loader: Loader;
  readonly #instruments: Instruments;
  readonly #children = new Map<string, XCache>();
  /** By which other caches on the store know it, and its children. */
  readonly #face: Namespace;
  /** The face, or the namespace that takes its place. */
  #ownNamespace: Namespace;
  /** `#ownNamespace`, or one that rejects every call while disconnected. */
  #namespace: Namespace;

  /** Connects on first use. Without arguments: `redis://localhost:6379/0`. Throws ConfigError. */
  constructor(config?: CacheConfig | { readonly config: CacheConfig }) {
    const { root, namespace } = config instanceof CacheScope ? config : openScope(config, systemClock);
    this.#root = root;
    this.#face = namespace;
    this.#ownNamespace = namespace;
    this.#namespace = root.isOpen ? namespace : disconnectedNamespace;
    this.#instruments = new Instruments(root, namespace, this);
    this.#telemetry = this.#instruments.telemetry;
    const log = this.#decisionLog();
    this.#loader = new Loader(namespace.changes, {
      clock: root.clock,
      loadLimitMs: root.config.loadLimit * 1000,
      namespace: () => this.#namespace,
      own: (value) => this.#ownNamespace.own(value),
      freezes: namespace.freezes === true,
      signal: () => root.signal,
      loading: () => {
        this.#telemetry.recorder.loads++;
      },
      stored: (key, tags) => this.#telemetry.written(key, tags),
      ...(log !== undefined && { notStored: (key: string, reason: string) => log.notStored(key, reason) }),
      report: (error) => this.#telemetry.failed("getOrSet", error),
    });
    namespace.whenReady?.((ready) => {
      this.#ownNamespace = ready;
      if (this.#namespace === namespace) this.#namespace = ready;
    });
    offerPeek(this, {
      peek: (key) => (isLoadHitTraced() ? undefined : this.#namespace.peek(key)),
      used: (key) => this.#telemetry.hit(key),
      find: (key) => this.#find(key),
    });
    offerFeedHost(this, root);
    offerFunctionRecords(this, (name) => this.#telemetry.functions.record(name));
    offerInside(this, {
      root,
      namespace: () => this.#namespace,
      instruments: this.#instruments,
      deleteUnread: (keys) => this.#delete(keys, true),
    });
    root.join(
      this.#instruments.member((isOpen) => {
        this.#namespace = isOpen ? this.#ownNamespace : disconnectedNamespace;
        return isOpen ? undefined : this.#loader.release();
      }),
    );
  }

  /** Undefined unless `DEBUG` names `xcache:cache`. */
  #decisionLog(): DecisionLog | undefined {
    const write = debugLog("cache");
    if (write === undefined) return undefined;
    const log = new DecisionLog(write, this.#telemetry.events, (key) => this.explain(key));
    this.#telemetry.decisions = log;
    traceForLog();
    return log;
  }

  /** Reads `XCACHE_*` variables. Throws ConfigError naming a variable that does not parse. */
  static fromEnv(env: Readonly<Record<string, string | undefined>> = process.env): XCache {
    return new XCache(configFromEnv(env));
  }

  /** Reads a YAML file, synchronously. Throws ConfigError naming the key or line at fault. */
  static fromYaml(path: string): XCache {
    return new XCache(configFromYaml(path));
  }

  /** The configured settings of database tables, by name. */
  get tables(): Readonly<Record<string, ResolvedTable>> {
    return this.#root.config.tables;
  }

  /**
   * Optional: the first operation connects. Reopens a disconnected cache together with its namespaces. Throws
   * ConnectionError if disconnect() is called meanwhile.
   */
  connect(): Promise<void> {
    return this.#root.connect();
  }

  /**
   * Idempotent; takes at most the operation timeout, in which calls that are on their way end. Also closes the namespaces;
   * nothing keeps Node alive afterwards. Other caches on the same backend object keep working: the last one to disconnect
   * closes the store.
   */
  disconnect(): Promise<void> {
    return this.#root.disconnect();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }

  /** The value, or undefined when absent; null is a value like any other. */
  get<T = unknown>(key: string): Promise<T | undefined> {
    const value = this.#namespace.peek(key);
    const { gets } = this.#telemetry;
    if (value !== undefined && !gets.timesNext && !isGetHitTraced()) return this.#hit(key, value as T);
    return gets.timesNext || isGetTraced() ? this.#instrumentedGet(key) : this.#getFromStore(key);
  }

  /**
   * What this process itself holds, at once: in the memory store, or in the near tier while it is kept up to date. The
   * store is not asked and nothing is loaded; a hit counts as one.
   */
  peek<T = unknown>(key: string): T | undefined {
    requireKey(key);
    const value = this.#namespace.peek(key);
    if (value !== undefined) this.#telemetry.hit(key);
    return value as T | undefined;
  }

  /** The present entries only; one round trip per shard. */
  getMany<T = unknown>(keys: readonly string[]): Promise<Map<string, T>> {
    return this.#telemetry.run("getMany", async () => {
      const asked = requireKeys(keys);
      const values = await this.#namespace.getMany(asked);
      this.#telemetry.lookedMany(asked, values);
      return values as Map<string, T>;
    });
  }

  /** Stores a value for `ttl` seconds under `tags`. Throws CodecError for a value that cannot be stored. */
  set(key: string, value: unknown, options?: SetOptions): Promise<void> {
    if (this.#telemetry.sets.timesNext || isSetTraced()) return this.#instrumentedSet(key, value, options);
    return this.#set(key, value, options);
  }

  #set(key: string, value: unknown, options: SetOptions | undefined): Promise<void> {
    this.#telemetry.sets.add();
    try {
      requireKey(key);
      requireValue(value);
      const root = this.#root;
      const entry =
        (options === undefined ? root.defaultEntryOptions : undefined) ??
        resolveSetOptions(options, root.defaults);
      const isObserved = this.#telemetry.events.on.set !== undefined;
      const stored = this.#namespace.set(key, value, entry, isObserved ? undefined : this.#telemetry);
      if (stored !== undefined) return isObserved ? this.#observedSet(stored, key, entry.tags) : stored;
      this.#telemetry.written(key, entry.tags);
      return DONE;
    } catch (error) {
      return Promise.reject(this.#telemetry.failedCall("set", error));
    }
  }

  /** Its listeners run in the caller's context, which a continuation keeps and a callback of the store does not. */
  async #observedSet(storing: Promise<void>, key: string, tags: readonly string[]): Promise<void> {
    try {
      await storing;
    } catch (error) {
      throw this.#telemetry.notWritten(error);
    }
    this.#telemetry.written(key, tags);
  }

  /** Stores several values with the same options. */
  setMany(
    entries: Iterable<readonly [string, unknown]> | Readonly<Record<string, unknown>>,
    options?: SetOptions,
  ): Promise<void> {
    return this.#telemetry.run("setMany", async () => {
      const pairs = requireEntries(entries);
      const entry = resolveSetOptions(options, this.#root.defaults);
      await this.#namespace.setMany(pairs, entry);
      for (const [key] of pairs) this.#telemetry.written(key, entry.tags);
    });
  }

  /**
   * The stored value, or what `load` returns, which is then stored. One load per key at a time; an invalidation during
   * the load is never lost. A failing store never fails the call; a failing load does. A load must not wait for its own
   * key, directly or through another load: where this can be detected it is rejected, otherwise it waits until
   * `hardTimeout`.
   */
  getOrSet<T, S = T>(key: string, load: LoadAs<T, S>, options?: GetOrSetOptions): Promise<T> {
    const isForced =
      typeof load !== "function" || (options !== undefined && !allowHits(options, this.#root.defaults));
    const value = isForced ? undefined : this.#namespace.peek(key);
    if (value !== undefined && !isLoadHitTraced()) return this.#hit(key, value as T);
    const typedLoad = load as unknown as Load<T>;
    if (!isLoadTraced())
      return isForced ? this.#load(key, typedLoad, options) : this.#seek(key, typedLoad, options);
    return this.#tracedGetOrSet(key, typedLoad, options, isForced);
  }

  /** Peeks again, so that the span includes the lookup. */
  #tracedGetOrSet<T>(
    key: string,
    load: Load<T>,
    options: GetOrSetOptions | undefined,
    isForced: boolean,
  ): Promise<T> {
    return this.#telemetry.trace("getOrSet", { key }, () => {
      const value = isForced ? undefined : this.#namespace.peek(key);
      if (value !== undefined) return this.#hit(key, value as T);
      return isForced ? this.#load(key, load, options) : this.#seek(key, load, options);
    });
  }

  #hit<T>(key: string, value: T): Promise<T> {
    this.#telemetry.hit(key);
    return answered(value);
  }

  async exists(key: string): Promise<boolean> {
    return (await this.#inspect("exists", key)) !== undefined;
  }

  /** Returns how many of the keys were present. */
  delete(keys: string | readonly string[]): Promise<number> {
    return this.#delete(keys, false);
  }

  #delete(keys: string | readonly string[], unread: boolean): Promise<number> {
    return this.#telemetry.run("delete", async () => {
      const distinct = requireDistinctKeys(keys);
      const present = await this.#namespace.delete(distinct, unread);
      this.#telemetry.deleted(distinct, present);
      return present;
    });
  }

  /** Seconds left, Infinity when it never expires, undefined when absent. */
  async ttl(key: string): Promise<number | undefined> {
    const entry = await this.#inspect("ttl", key);
    return entry === undefined ? undefined : entry.ttlMs / 1000;
  }

  async tags(key: string): Promise<string[] | undefined> {
    const entry = await this.#inspect("tags", key);
    return entry === undefined ? undefined : [...entry.tags];
  }

  /**
   * The entries of this namespace with what is known about them, in pages as the store hands them out, some possibly empty.
   * A `cursor` of a page continues after it, in this process or another. A key may occur twice. Looking is not counted.
   * Throws UnsupportedError on a store that cannot list keys.
   */
  scan(options: EntryScanOptions = {}): AsyncIterable<EntryPage> {
    return scanPages(this.#namespace, this.#root.store.backend.name, requireScanOptions(options));
  }

  /** What is known about one entry, fresh or stale, without its value; undefined when absent. Looking is not counted. */
  async inspect(key: string): Promise<EntryInfo | undefined> {
    requireKey(key);
    return inspected(this.#namespace, key);
  }

  /**
   * What a `get` or `getOrSet` of this key would do now, and why: where a hit comes from, what has expired it or invalidated
   * it, who is loading it. `options` are those of the getOrSet in question. Nothing is counted, kept or loaded.
   *
   * @example
   * ```ts
   * const { getOrSet, reason } = await cache.explain("user:1");
   * console.log(getOrSet, reason); // load invalidated by the tag "users" at 2026-11-18T01:02:03.000Z
   * ```
   */
  async explain(key: string, options?: GetOrSetOptions): Promise<KeyExplanation> {
    requireKey(key);
    requireOpen(this.#root.isOpen);
    const { store, defaults } = this.#root;
    return explainKey(
      {
        namespace: this.#namespace,
        loader: this.#loader,
        breaker: store.breaker,
        invalidatedAt: (what) => this.#instruments.invalidatedAt(what),
      },
      key,
      resolveLoadOptions(options, defaults),
    );
  }

  /** Live keys of this namespace that match a glob, without prefix; streamed by cursor, so a key may occur twice. */
  keys(pattern = "*", options: ScanOptions = {}): AsyncIterable<string> {
    return this.#keys(glob(pattern), scanSignal(options));
  }

  /** Every entry that carries one of the tags is absent once this resolves. O(tags), never O(entries). */
  invalidateTags(tags: string | readonly string[]): Promise<void> {
    return this.#telemetry.run("invalidateTags", async () => {
      const list = requireTags(tags);
      await this.#namespace.invalidateTags(list);
      if (list.length > 0) this.#telemetry.invalidated({ tags: list });
    });
  }

  /** Removes the entries whose keys match a glob and returns their number. Rejects with the signal's reason if it aborts. */
  invalidatePattern(pattern: string, options: ScanOptions = {}): Promise<number> {
    return this.#telemetry.run("invalidatePattern", async () => {
      const signal = scanSignal(options);
      const present = await this.#namespace.invalidateMatching(glob(pattern), signal);
      // Some entries may be left, so the caller must not take the invalidation for complete.
      signal?.throwIfAborted();
      this.#telemetry.invalidated({ pattern });
      return present;
    });
  }

  /** Empties this namespace and its descendants. O(1); other prefixes are untouched. */
  clear(): Promise<void> {
    return this.#telemetry.run("clear", async () => {
      await this.#namespace.clear();
      this.#telemetry.invalidated({ all: true });
    });
  }

  /** A separate cache under this one's prefix, on the same connection. The same name returns the same object. */
  namespace(name: string): XCache {
    requireNamespace(name);
    let child = this.#children.get(name);
    if (child === undefined) {
      child = new XCache(new CacheScope(this.#root, this.#face.child(name)) as CacheConfig);
      this.#children.set(name, child);
    }
    return child;
  }

  /**
   * Counts of this object, keys and bytes of this prefix. `exact` scans instead of estimating, until `signal` aborts.
   * `fleet`: counts per minute of all processes that use this prefix with metrics on, over the last `since` seconds.
   */
  getStats(options: StatsOptions & { readonly fleet: true }): Promise<FleetStats>;
  getStats(options?: StatsOptions): Promise<CacheStats>;
  getStats(options: StatsOptions = {}): Promise<CacheStats> {
    return this.#telemetry.run("getStats", async () => {
      const { exact, fleet, since, signal } = requireStatsOptions(options);
      const usage = await this.#namespace.usage(exact, signal);
      // An aborted scan has counted only a part.
      signal?.throwIfAborted();
      const own = this.#telemetry.recorder.stats(usage);
      return fleet ? this.#instruments.history.fleet(own, since) : own;
    });
  }

  /**
   * What the processes that use this prefix with metrics on report about themselves: which are alive, and over the last
   * `since` seconds (a day at most) their calls by function and their invalidations. Looking is not counted.
   */
  async getActivity(options: ActivityOptions = {}): Promise<FleetActivity> {
    const since = requireActivityOptions(options);
    requireOpen(this.#root.isOpen);
    return this.#instruments.history.activity(since);
  }

  /**
   * Advice based on the metrics of the last `since` seconds, worst first: functions that hardly hit, entries that
   * never expire, tags invalidated all the time, and so on. Looks at up to 2,000 entries. Not counted.
   */
  async advise(options: ActivityOptions = {}): Promise<readonly Advice[]> {
    const since = requireActivityOptions(options);
    requireOpen(this.#root.isOpen);
    const { advise } = await import("./advice/advise.ts");
    return advise(this, insideOf(this) as CacheInside, since);
  }

  /** Never throws, never hangs. */
  async health(): Promise<boolean> {
    return (await this.healthCheck()).isHealthy;
  }

  /** Never throws, never hangs. */
  async healthCheck(): Promise<HealthResult> {
    const { store, clock, config, isOpen } = this.#root;
    if (!isOpen) return { isHealthy: false, latencySeconds: 0, error: disconnectedError() };
    return checkHealth(store, clock, config.operationTimeout * 1000);
  }

  /** Never throws, never hangs. */
  async detailedHealthCheck(): Promise<DetailedHealth> {
    const { store, feeds } = this.#root;
    return detailHealth(store, await this.healthCheck(), this.getComprehensiveMetrics(), feeds);
  }

  /** Starts measuring rates over time; a no-op with a warning unless `enableMetrics`. */
  startMetricsCollection(): void {
    if (this.#root.config.enableMetrics) this.#telemetry.recorder.start();
    else
      process.emitWarning(
        "startMetricsCollection() does nothing because enableMetrics is false",
        "XCacheWarning",
      );
  }

  getComprehensiveMetrics(): ComprehensiveMetrics {
    return this.#instruments.comprehensive();
  }

  /** Keys that resemble `text`, best first. Needs `enableFuzzy`. */
  fuzzySearch(text: string, options: FuzzyOptions = {}): Promise<FuzzyMatch[]> {
    return this.#telemetry.run("fuzzySearch", async () => {
      requireOptions(options, ["threshold", "limit", "signal"]);
      requireSignal(options.signal);
      if (this.#root.config.enableFuzzy) {
        const { fuzzySearch } = await import("./search/fuzzy.ts");
        return fuzzySearch(this.#keyBatches(), text, options);
      }
      throw new ConfigError("FEATURE_DISABLED", "fuzzySearch needs enableFuzzy, which is false", {
        operation: "fuzzySearch",
        hint: "Set enableFuzzy: true (enable_fuzzy in YAML, XCACHE_ENABLE_FUZZY in the environment).",
      });
    });
  }

  on<E extends CacheEvent>(event: E, listener: Listener<E>): this {
    requireListener(event, listener);
    this.#telemetry.events.add(event, listener);
    return this;
  }

  off<E extends CacheEvent>(event: E, listener: Listener<E>): this {
    requireListener(event, listener);
    this.#telemetry.events.remove(event, listener);
    return this;
  }

  #instrumentedSet(key: string, value: unknown, options: SetOptions | undefined): Promise<void> {
    if (!isSetTraced()) return this.#timedSet(key, value, options);
    return this.#telemetry.trace("set", { key }, () => this.#timedSet(key, value, options));
  }

  async #timedSet(key: string, value: unknown, options: SetOptions | undefined): Promise<void> {
    const timing = this.#telemetry.begin(this.#telemetry.sets);
    try {
      await this.#set(key, value, options);
    } finally {
      this.#telemetry.time("set", timing);
    }
  }

  #find(key: string): Promise<unknown> {
    const telemetry = this.#telemetry;
    return new Promise((resolve, reject) => {
      this.#namespace.get(key, {
        answered: (value) => {
          if (value !== undefined) telemetry.looked(key, true);
          resolve(value);
        },
        failed: (error) => reject(telemetry.failedCall("get", error)),
      });
    });
  }

  #getFromStore<T>(key: string): Promise<T | undefined> {
    const telemetry = this.#telemetry;
    telemetry.gets.add();
    const { hit, miss } = telemetry.events.on;
    const isObserved = hit !== undefined || miss !== undefined;
    return new Promise((resolve, reject) => {
      const answer = resolve as (value: unknown) => void;
      const callback = isObserved
        ? new ObservedGetCallback(telemetry, key, answer, reject)
        : new GetCallback(telemetry, key, answer, reject);
      try {
        requireKey(key);
        this.#namespace.get(key, callback);
      } catch (error) {
        callback.failed(error);
      }
    });
  }

  /** Peeks again, so that the timing and the span include the lookup. */
  #instrumentedGet<T>(key: string): Promise<T | undefined> {
    if (!isGetTraced()) return this.#timedGet(key);
    return this.#telemetry.trace("get", { key }, () => this.#timedGet<T>(key));
  }

  async #timedGet<T>(key: string): Promise<T | undefined> {
    const timing = this.#telemetry.begin(this.#telemetry.gets);
    try {
      const value = this.#namespace.peek(key) as T | undefined;
      if (value === undefined) return await this.#getFromStore(key);
      this.#telemetry.hit(key);
      return value;
    } finally {
      this.#telemetry.time("get", timing);
    }
  }

  /** Reads a shared store, and loads only if it has no fresh value: a hit should cost a single promise. */
  #seek<T>(key: string, load: Load<T>, options: GetOrSetOptions | undefined): Promise<T> {
    const namespace = this.#namespace;
    if (namespace.seek === undefined || typeof key !== "string" || this.#loader.isLoading(key)) {
      return this.#load(key, load, options);
    }
    const calledAt = namespace.changes.now;
    const { signal } = this.#root;
    return new Promise((resolve) => {
      const request = this.#requestNow(options);
      const goOn = (lookup: StoreLookup): void =>
        resolve(this.#load(key, load, options, request, lookup, { calledAt, signal }));
      namespace.seek?.(
        key,
        new FindCallback(this.#telemetry, key, resolve as (value: unknown) => void, goOn),
      );
    });
  }

  /** The caller may change its options before the store has answered; those of wrapped functions never change. */
  #requestNow(options: GetOrSetOptions | undefined): ResolvedLoadOptions | undefined {
    if (options === undefined || areChecked(options)) return undefined;
    return resolveLoadOptions(options, this.#root.defaults);
  }

  /** `resolved`: the options as they were when the call began, where that was earlier. */
  #load<T>(
    key: string,
    load: Load<T>,
    options: GetOrSetOptions | undefined,
    resolved?: ResolvedLoadOptions,
    lookup?: StoreLookup,
    call?: CallStart,
  ): Promise<T> {
    const by = callerIn(options);
    const observer = new CountedLoad(this.#telemetry, key, by);
    let request: ResolvedLoadOptions;
    try {
      request = this.#loadRequest(key, load, options, resolved);
    } catch (error) {
      return Promise.reject(error);
    }
    if (by !== undefined) {
      by.missed++;
      by.ttlMs = request.entry.ttlMs;
    }
    return this.#loader.load(key, load, request, observer, lookup, call) as Promise<T>;
  }

  #loadRequest(
    key: string,
    load: unknown,
    options: GetOrSetOptions | undefined,
    resolved: ResolvedLoadOptions | undefined,
  ): ResolvedLoadOptions {
    try {
      requireKey(key);
      requireLoad(load);
      const { defaults, defaultLoadOptions } = this.#root;
      const present = options === undefined ? defaultLoadOptions : resolved;
      return present ?? resolveLoadOptions(options, defaults);
    } catch (error) {
      this.#telemetry.finish("getOrSet", undefined);
      throw this.#telemetry.failedCall("getOrSet", error);
    }
  }

  async *#keys(matches: (key: string) => boolean, signal?: AbortSignal): AsyncIterable<string> {
    this.#telemetry.finish("keys", undefined);
    try {
      for await (const batch of this.#namespace.scan({ signal })) {
        for (const { key } of batch) if (matches(key)) yield key;
      }
    } catch (error) {
      throw this.#telemetry.failedCall("keys", error);
    }
  }

  async *#keyBatches(): AsyncIterable<readonly string[]> {
    for await (const batch of this.#namespace.scan()) yield batch.map(({ key }) => key);
  }

  #inspect(operation: string, key: string): Promise<Inspection | undefined> {
    return this.#telemetry.run(operation, () => {
      requireKey(key);
      return this.#namespace.inspect(key);
    });
  }
}

function requireOpen(isOpen: boolean): void {
  if (!isOpen) throw disconnectedError();
}

function scanSignal(options: ScanOptions): AbortSignal | undefined {
  requireOptions(options, ["signal"]);
  return requireSignal(options.signal);
}
