// A store shared by processes: one backend behind a circuit breaker and deadlines, with its stamps and pushes.
import type { Backend, ConnectedServer, Restriction } from "../backend.ts";
import type { BreakerOptions, CircuitBreaker } from "../breaker.ts";
import { ChangeLog } from "../change-log.ts";
import type { Clock } from "../clock.ts";
import type { Codec } from "../codec.ts";
import { disconnectedError } from "../disconnected-namespace.ts";
import { ConnectionError, OperationTimeoutError } from "../errors.ts";
import { Delivery } from "../invalidation/delivery.ts";
import { Failover } from "../invalidation/failover.ts";
import { Outbox, type PendingInvalidation } from "../invalidation/outbox.ts";
import { OutboxBackend } from "../invalidation/outbox-backend.ts";
import { RecentInvalidations } from "../invalidation/recent-invalidations.ts";
import { StampBook } from "../invalidation/stamps.ts";
import { spelling } from "../keys.ts";
import type { Namespace, NamespaceFace, Store } from "../namespace.ts";
import type { NearTier } from "../near/pushed-near.ts";
import { Guard } from "../resilience/guard.ts";
import { isStoreFailure, isTransient } from "../resilience/store-failure.ts";
import { StoreNotice } from "../resilience/store-notice.ts";
import { withDeadline } from "../resilience/with-deadline.ts";
import { Maintenance } from "./maintenance.ts";
import { MemoryUsageMonitor } from "./memory-usage.ts";
import type { NamespaceHost, OpenNamespace } from "./namespace-host.ts";
import type { Observers } from "./observers.ts";
import { StoreFace } from "./observers.ts";
import { SharedNamespace } from "./shared-namespace.ts";

export interface StoreOptions {
  readonly clock: Clock;
  readonly codec: Codec;
  readonly breaker: BreakerOptions;
  readonly operationTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
  /** Keeps hot entries in this process. */
  readonly near?: NearTier;
}

export class SharedStore implements Store, NamespaceHost {
  readonly backend: OutboxBackend;
  readonly breaker: CircuitBreaker;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly guard: Guard;
  readonly stamps: StampBook;
  readonly near: NearTier | undefined;
  readonly observers: Observers;
  /** Reports a failure that no caller sees. */
  readonly report = (error: Error): void => {
    for (const observer of this.observers) observer.failed(error);
  };
  /** Grows with every disconnect. */
  session = 0;
  #isDisconnected = false;
  /** For health probes, which do not count as use of the store. */
  readonly #probes: Guard;
  readonly #operationTimeoutMs: number;
  readonly #connectLimitMs: number;
  readonly #outbox: Outbox;
  readonly #delivery: Delivery;
  readonly #recent: RecentInvalidations;
  readonly #failover: Failover;
  readonly #maintenance: Maintenance;
  readonly #memoryUsage: MemoryUsageMonitor;
  /** Root namespaces that were not yet checked against any server. */
  #unchecked: SharedNamespace[] = [];
  #preparation: Promise<void> | undefined;
  readonly #roots = new Map<string, SharedNamespace>();
  readonly #opened = new OpenNamespaces();
  /** Ends the pauses of background work. */
  readonly #pauses = new Set<() => void>();
  readonly #keyListeners = new Map<string, Set<() => void>>();

  /** `face`: by which caches know it already. */
  constructor(
    backend: Backend,
    options: StoreOptions,
    face: StoreFace = new StoreFace(options.breaker, options.clock),
  ) {
    this.observers = face.observers;
    this.breaker = face.breaker;
    this.#outbox = new Outbox({
      records: backend,
      clock: options.clock,
      operationTimeoutMs: options.operationTimeoutMs,
      isTransferring: () => backend.isTransferring?.() === true,
      report: this.report,
      // A stamp known here would let entries be served without asking the store, and so without delivering.
      onPending: (key) => this.stamps.forget(key),
      onDelivered: (delivered) => this.confirmed(() => [delivered]),
      repeatAfterMs: backend.capabilities.fenced === false ? options.operationTimeoutMs : undefined,
      onRepeated: () => this.#delivery.now(),
    });
    this.#delivery = new Delivery(options.clock, this.#outbox, () => this.breaker.connected());
    this.backend = new OutboxBackend(backend, this.#outbox, options.clock, options.operationTimeoutMs);
    this.clock = options.clock;
    this.codec = options.codec;
    this.near = options.near;
    const { clock, operationTimeoutMs } = options;
    this.#operationTimeoutMs = operationTimeoutMs;
    // Longer than the backend's own limit, whose error says more.
    this.#connectLimitMs = options.connectTimeoutMs + operationTimeoutMs;
    const answersInPart = (): boolean => this.backend.answersInPart();
    const isTransferring = (): boolean => this.backend.isTransferring();
    const isHeard = (): boolean => [...this.observers].some((observer) => observer.hearsErrors?.());
    const notice = new StoreNotice({ clock, answersInPart, isHeard });
    this.guard = new Guard(clock, this.breaker, operationTimeoutMs, {
      before: this.#before,
      answersInPart,
      isTransferring,
      notice,
    });
    this.#probes = new Guard(clock, this.breaker, operationTimeoutMs, {
      answersInPart,
      isTransferring,
      notice,
    });
    // Not guarded: reading the memory usage says nothing about the health of ordinary operations.
    this.#memoryUsage = new MemoryUsageMonitor(
      this.backend,
      clock,
      operationTimeoutMs,
      () => this.breaker.state === "closed",
    );
    this.#recent = new RecentInvalidations(options.clock);
    this.#failover = new Failover(options.clock, this.#recent);
    this.#maintenance = new Maintenance(
      options.clock,
      () => this.#maintain(),
      () => this.#recent.isWatched,
    );
    this.stamps = new StampBook(this.backend, options.clock, () => this.#maintenance.used());
    backend.open?.({
      clock: options.clock,
      operationTimeoutMs: options.operationTimeoutMs,
      connectTimeoutMs: options.connectTimeoutMs,
      poolSize: options.poolSize,
      keepsEntries: options.near !== undefined,
      report: this.report,
      evicted: (key) => this.#evicted(key),
      onServer: (server) => this.#onServer(server),
      connected: () => {
        this.breaker.connected();
        this.#delivery.now();
      },
    });
    backend.push?.onChange((key) => this.#pushed(key));
  }

  namespace(prefix: string, face?: NamespaceFace): Namespace {
    let namespace = this.#roots.get(prefix);
    if (namespace === undefined) {
      namespace = new SharedNamespace(
        this,
        spelling(prefix),
        [],
        face?.changes ?? new ChangeLog(),
        face?.self,
      );
      this.#roots.set(prefix, namespace);
      this.#unchecked.push(namespace);
    }
    return namespace;
  }

  opened(namespace: OpenNamespace): void {
    this.#opened.add(namespace);
  }

  /** Async, like `disconnect`: also what the backend throws synchronously rejects the promise. */
  async connect(): Promise<void> {
    this.#isDisconnected = false;
    this.guard.deadlines.resume();
    this.#probes.deadlines.resume();
    this.near?.start();
    this.#maintenance.start();
    this.#delivery.start();
    await this.backend.connect();
  }

  async settle(): Promise<void> {
    // What is on its way when the connection closes could take effect after newer changes.
    const idle = this.guard.deadlines.idle();
    await this.#deliverPending();
    await idle;
    await this.#deliverPending();
  }

  async #deliverPending(): Promise<void> {
    // What is in progress may have begun while the store failed, and fail with it: that says nothing about the store now.
    for (let attempt = 0; attempt < 2 && this.#outbox.size > 0 && !this.#isDisconnected; attempt++) {
      // Also ends the pause between attempts to reach a store that has failed: it may be back.
      await this.backend.connect().catch(() => {});
      await this.#outbox.deliverAll();
    }
  }

  async disconnect(): Promise<void> {
    this.#isDisconnected = true;
    this.session++;
    this.#maintenance.stop();
    this.#delivery.stop();
    this.guard.deadlines.rest();
    this.#probes.deadlines.rest();
    this.near?.stop();
    this.stamps.forgetAll();
    this.#memoryUsage.forget();
    for (const end of [...this.#pauses]) end();
    await this.backend.disconnect();
  }

  memoryUsage(): number {
    return this.#memoryUsage.latest();
  }

  firstMemoryUsage(spentMs: number): Promise<number> {
    return this.#memoryUsage.first(spentMs);
  }

  ping(): Promise<void> {
    return this.#probes.run("ping", () => this.backend.ping());
  }

  async restrictions(spentMs = 0): Promise<readonly Restriction[]> {
    const [prefix = ""] = this.#roots.keys();
    const asked = this.backend.restrictions?.(spelling(prefix).own("probe"));
    if (asked === undefined) return [];
    const limitMs = this.#operationTimeoutMs;
    return withDeadline(this.clock, Math.max(0, limitMs - spentMs), asked, () => {
      throw new OperationTimeoutError(`the store did not answer within ${limitMs / 1000} s`);
    });
  }

  listen(key: string, listener: () => void): () => void {
    const listeners = this.#keyListeners.get(key) ?? new Set();
    listeners.add(listener);
    this.#keyListeners.set(key, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#keyListeners.delete(key);
    };
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.#pauses.delete(end);
        resolve();
      };
      const timer = this.clock.after(ms, end);
      this.#pauses.add(end);
    });
  }

  confirmed(pending: () => readonly PendingInvalidation[]): void {
    if (this.backend.capabilities.replicated === true) this.#recent.add(pending());
  }

  get failovers(): number {
    return this.#failover.repeats;
  }

  interrupted(pending: () => readonly PendingInvalidation[]): void {
    this.#outbox.add(pending());
    this.#delivery.now();
  }

  unconfirmed(pending: () => readonly PendingInvalidation[], error: unknown): void {
    if (!isStoreFailure(error)) return;
    this.#outbox.add(pending());
    this.#delivery.later();
    this.#maintenance.used();
  }

  readonly #before = (): Promise<void> | undefined => {
    // A call of a cache that is disconnected must not open the store again; one of a cache opened since then does.
    if (this.#isDisconnected && this.observers.size === 0) throw disconnectedError();
    this.#maintenance.used();
    if (this.#preparation !== undefined) {
      // The preparation in progress does not cover namespaces opened since it began.
      const isComplete = this.#unchecked.length === 0;
      return isComplete ? this.#preparation : this.#preparation.then(() => this.#before());
    }
    if (this.#unchecked.length === 0 && !this.#isDisconnected) return undefined;
    this.#preparation = this.#prepare().finally(() => {
      this.#preparation = undefined;
    });
    return this.#preparation;
  };

  async #prepare(): Promise<void> {
    const unchecked = this.#unchecked;
    this.#unchecked = [];
    try {
      // Connect to all servers first: a namespace's record of its server may be on any of them.
      await this.#within(this.#connectLimitMs, this.connect());
      for (const server of this.#failover.servers) {
        for (const namespace of unchecked) await this.#check(namespace, server);
      }
    } catch (error) {
      this.#unchecked.push(...unchecked);
      throw error;
    }
  }

  /** An unreachable server serves nothing and is checked when it reconnects, so its error is ignored; an error reply is not. */
  async #check(namespace: SharedNamespace, server: ConnectedServer): Promise<void> {
    try {
      await this.#confirm(namespace, server);
    } catch (error) {
      if (!(error instanceof ConnectionError) || isTransient(error)) throw error;
    }
  }

  async #onServer(server: ConnectedServer): Promise<void> {
    const checked = new Set(this.#roots.values());
    await this.#failover.onServer(server, [...checked]);
    // Iterating a Map also visits entries added meanwhile: the namespaces opened since.
    for (const namespace of this.#roots.values())
      if (!checked.has(namespace)) await this.#failover.check(namespace, server, true);
  }

  /** Runs every few seconds while the store is used. Its failures do not count for the breaker; those of callers do. */
  async #maintain(): Promise<void> {
    try {
      if (this.breaker.state !== "closed") await this.ping();
    } catch {
      return;
    }
    // The next call that needs the store reports the error to its caller.
    await this.#within(this.#operationTimeoutMs, this.stamps.touchUsed()).catch(() => {});
    for (const server of this.#failover.servers) {
      await Promise.allSettled(
        [...this.#roots.values()].map((namespace) => this.#confirm(namespace, server)),
      );
    }
  }

  async #confirm(namespace: SharedNamespace, server: ConnectedServer): Promise<void> {
    const check = this.#failover.check(namespace, { ...server, records: this.backend });
    await this.#within(this.#operationTimeoutMs, check);
  }

  /** Bounds work that has no deadline of its own. */
  #within<T>(limitMs: number, work: Promise<T>): Promise<T> {
    return withDeadline(this.clock, limitMs, work, () => {
      throw new OperationTimeoutError(`the store did not answer within ${limitMs / 1000} s`);
    });
  }

  #evicted(spelled: string): void {
    const owner = this.#opened.ownerOf(spelled);
    if (owner !== undefined) this.observers.evicted(owner.self, owner.names.keyOf(spelled));
  }

  #pushed(key: string | undefined): void {
    this.#opened.pushed(key);
    if (key === undefined) {
      this.stamps.forgetAll();
      for (const listeners of [...this.#keyListeners.values()])
        for (const listener of [...listeners]) listener();
    } else {
      this.stamps.forget(key);
      for (const listener of [...(this.#keyListeners.get(key) ?? [])]) listener();
    }
  }
}

/** The namespaces in use, found by the keys of their entries as the store spells them: there may be very many. */
class OpenNamespaces {
  readonly #byPrefix = new Map<string, OpenNamespace>();

  add(namespace: OpenNamespace): void {
    this.#byPrefix.set(namespace.names.entryPrefix, namespace);
  }

  /** The namespace whose entry a spelled key is; undefined for the library's own records. */
  ownerOf(spelled: string): OpenNamespace | undefined {
    return this.#byPrefix.get(spelled.slice(0, spelled.indexOf(":") + 1));
  }

  /** The store reports that a record has changed; undefined: any may have. */
  pushed(spelled: string | undefined): void {
    if (spelled !== undefined) this.ownerOf(spelled)?.pushed(spelled);
    else for (const namespace of this.#byPrefix.values()) namespace.pushed(undefined);
  }
}
