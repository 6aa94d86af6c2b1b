// A store shared by processes: one backend behind a breaker and deadlines, with its stamps and pushes.
import type { Backend, MetServer } from "../backend.ts";
import { type BreakerOptions, CircuitBreaker } from "../breaker.ts";
import { ChangeLog } from "../change-log.ts";
import type { Clock } from "../clock.ts";
import type { Codec } from "../codec.ts";
import { ConnectionError, OperationTimeoutError } from "../errors.ts";
import { Failover } from "../invalidation/failover.ts";
import { Outbox, type PendingInvalidation } from "../invalidation/outbox.ts";
import { OutboxBackend } from "../invalidation/outbox-backend.ts";
import { RecentInvalidations } from "../invalidation/recent-invalidations.ts";
import { StampBook } from "../invalidation/stamps.ts";
import { spelling } from "../keys.ts";
import type { Namespace, Store } from "../namespace.ts";
import type { NearTier } from "../near/pushed-near.ts";
import { Guard } from "../resilience/guard.ts";
import { isPassing, isStoreFailure } from "../resilience/store-failure.ts";
import { withDeadline } from "../resilience/with-deadline.ts";
import { Maintenance } from "./maintenance.ts";
import { MemoryUsageMonitor } from "./memory-usage.ts";
import type { NamespaceHost, OpenNamespace } from "./namespace-host.ts";
import { Observers } from "./observers.ts";
import { OpenNamespaces } from "./opened-spaces.ts";
import { SharedNamespace } from "./shared-namespace.ts";

export interface StoreOptions {
  readonly clock: Clock;
  readonly codec: Codec;
  readonly breaker: BreakerOptions;
  readonly operationTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
  /** Makes reads of hot entries stay in this process. */
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
  readonly observers = new Observers();
  /** Tells of a failure that no caller sees. */
  readonly report = (error: Error): void => {
    for (const observer of this.observers) observer.failed(error);
  };
  /** Grows with every disconnect. */
  session = 0;
  /** For asking how the store is, which is no use of it. */
  readonly #probes: Guard;
  readonly #operationTimeoutMs: number;
  readonly #connectLimitMs: number;
  readonly #outbox: Outbox;
  readonly #recent: RecentInvalidations;
  readonly #continuity: Failover;
  readonly #upkeep: Maintenance;
  readonly #fill: MemoryUsageMonitor;
  /** Root namespaces that no server was compared with yet. */
  #unchecked: SharedNamespace[] = [];
  #preparation: Promise<void> | undefined;
  readonly #roots = new Map<string, SharedNamespace>();
  readonly #opened = new OpenNamespaces();
  readonly #keyListeners = new Map<string, Set<() => void>>();

  constructor(backend: Backend, options: StoreOptions) {
    this.#outbox = new Outbox({
      records: backend,
      clock: options.clock,
      operationTimeoutMs: options.operationTimeoutMs,
      report: this.report,
      // What is at hand would be served without asking the store, and so without delivering.
      owed: (key) => this.stamps.forget(key),
      delivered: (remedy) => this.confirmed(() => [remedy]),
    });
    this.backend = new OutboxBackend(backend, this.#outbox, options.clock, options.operationTimeoutMs);
    this.clock = options.clock;
    this.codec = options.codec;
    this.near = options.near;
    this.breaker = new CircuitBreaker(options.breaker, options.clock, (state) => {
      for (const observer of this.observers) observer.breakerChanged(state);
    });
    const { clock, operationTimeoutMs } = options;
    this.#operationTimeoutMs = operationTimeoutMs;
    // A backend with a limit of its own knows better what went wrong.
    this.#connectLimitMs = options.connectTimeoutMs + operationTimeoutMs;
    const answersInPart = (): boolean => this.backend.answersInPart();
    const before = (): Promise<void> | undefined => this.#before();
    this.guard = new Guard(clock, this.breaker, operationTimeoutMs, { before, answersInPart });
    this.#probes = new Guard(clock, this.breaker, operationTimeoutMs, { answersInPart });
    // A look says nothing of how the store answers what it is for, so the breaker is not told of it.
    this.#fill = new MemoryUsageMonitor(
      this.backend,
      clock,
      operationTimeoutMs,
      () => this.breaker.state === "closed",
    );
    this.#recent = new RecentInvalidations(options.clock);
    this.#continuity = new Failover(options.clock, this.#recent);
    this.#upkeep = new Maintenance(
      options.clock,
      () => this.#keepUp(),
      () => this.#outbox.size > 0 || this.#recent.isWatched,
    );
    this.stamps = new StampBook(this.backend, options.clock, () => this.#upkeep.used());
    backend.open?.({
      clock: options.clock,
      operationTimeoutMs: options.operationTimeoutMs,
      connectTimeoutMs: options.connectTimeoutMs,
      poolSize: options.poolSize,
      keepsEntries: options.near !== undefined,
      report: this.report,
      evicted: (key) => this.#evicted(key),
      onServer: (server) => this.#meet(server),
    });
    backend.push?.onChange((key) => this.#pushed(key));
  }

  namespace(prefix: string): Namespace {
    let space = this.#roots.get(prefix);
    if (space === undefined) {
      space = new SharedNamespace(this, spelling(prefix), [], new ChangeLog());
      this.#roots.set(prefix, space);
      this.#unchecked.push(space);
    }
    return space;
  }

  opened(space: OpenNamespace): void {
    this.#opened.add(space);
  }

  connect(): Promise<void> {
    this.#upkeep.start();
    return this.backend.connect();
  }

  disconnect(): Promise<void> {
    this.session++;
    this.#upkeep.stop();
    this.stamps.forgetAll();
    this.#fill.forget();
    return this.backend.disconnect();
  }

  fill(): number {
    return this.#fill.latest();
  }

  firstFill(spentMs: number): Promise<number> {
    return this.#fill.first(spentMs);
  }

  ping(): Promise<void> {
    return this.#probes.run("ping", () => this.backend.ping());
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

  confirmed(remedies: () => readonly PendingInvalidation[]): void {
    if (this.backend.capabilities.replicated === true) this.#recent.add(remedies());
  }

  unconfirmed(remedies: () => readonly PendingInvalidation[], error: unknown): void {
    if (!isStoreFailure(error)) return;
    this.#outbox.add(remedies());
    this.#upkeep.used();
  }

  #before(): Promise<void> | undefined {
    this.#upkeep.used();
    if (this.#preparation !== undefined) {
      // It does not concern what was opened since it began.
      const isComplete = this.#unchecked.length === 0;
      return isComplete ? this.#preparation : this.#preparation.then(() => this.#before());
    }
    if (this.#unchecked.length === 0) return undefined;
    this.#preparation = this.#prepare().finally(() => {
      this.#preparation = undefined;
    });
    return this.#preparation;
  }

  async #prepare(): Promise<void> {
    const unchecked = this.#unchecked;
    this.#unchecked = [];
    try {
      // All of them first: a namespace's note may be on any.
      await this.#within(this.#connectLimitMs, this.backend.connect());
      for (const server of this.#continuity.servers) {
        for (const space of unchecked) await this.#check(space, server);
      }
    } catch (error) {
      this.#unchecked.push(...unchecked);
      throw error;
    }
  }

  /** Of a server that cannot be reached nothing is served; it is met again when it can, and compared with then. One that answers is not. */
  async #check(space: SharedNamespace, server: MetServer): Promise<void> {
    try {
      await this.#confirm(space, server);
    } catch (error) {
      if (!(error instanceof ConnectionError) || isPassing(error)) throw error;
    }
  }

  async #meet(server: MetServer): Promise<void> {
    const met = new Set(this.#roots.values());
    await this.#continuity.meet(server, [...met]);
    // A map tells also of what is added while it is gone through: those that were opened meanwhile.
    for (const space of this.#roots.values())
      if (!met.has(space)) await this.#continuity.check(space, server);
  }

  /** Every few seconds while the store is used; failures show where it is used, and only there does the circuit count them. */
  async #keepUp(): Promise<void> {
    try {
      if (this.breaker.state !== "closed") await this.ping();
    } catch {
      return;
    }
    await this.#outbox.deliverAll();
    // The next call that needs the store tells its caller what is wrong.
    await this.#within(this.#operationTimeoutMs, this.stamps.touchUsed()).catch(() => {});
    for (const server of this.#continuity.servers) {
      await Promise.allSettled([...this.#roots.values()].map((space) => this.#confirm(space, server)));
    }
  }

  async #confirm(space: SharedNamespace, server: MetServer): Promise<void> {
    const check = this.#continuity.check(space, { ...server, records: this.backend });
    await this.#within(this.#operationTimeoutMs, check);
  }

  /** What nobody else limits would wait for ever for a store that never answers. */
  #within<T>(limitMs: number, work: Promise<T>): Promise<T> {
    return withDeadline(this.clock, limitMs, work, () => {
      throw new OperationTimeoutError(`the store did not answer within ${limitMs / 1000} s`);
    });
  }

  #evicted(spelled: string): void {
    const owner = this.#opened.ownerOf(spelled);
    if (owner !== undefined) this.observers.evicted(owner, owner.names.keyOf(spelled));
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
