// One namespace of a shared store: reads, writes, invalidations and listings of its entries.

import { ChangeLog } from "../change-log.ts";
import type { Counters } from "../counters.ts";
import { atEndOfTurn } from "../event-loop.ts";
import { frozen, isMadeFrozen } from "../frozen.ts";
import type { FailoverSubject } from "../invalidation/failover.ts";
import { entryOf, isFresh } from "../invalidation/liveness.ts";
import { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { PendingInvalidation } from "../invalidation/outbox.ts";
import { LARGE_BYTES } from "../invalidation/outbox-backend.ts";
import type { Spelling } from "../keys.ts";
import type {
  Admission,
  AdmissionOptions,
  EntryOptions,
  EntryScanOptions,
  Examination,
  Found,
  Inspection,
  Namespace,
  NamespaceFace,
  NamespaceUsage,
  Preview,
  ReadCallback,
  Sighting,
  WriteObserver,
} from "../namespace.ts";
import { ComparedNear } from "../near/compared-near.ts";
import { type Near, PushedNear, pushesChanges } from "../near/pushed-near.ts";
import type { OwnRecords } from "../own-records.ts";
import type { Entry } from "../record.ts";
import { settle } from "../resilience/guard.ts";
import type { Outcome } from "../resilience/guarded-call.ts";
import { ClearSweep } from "./clear-sweep.ts";
import { Entries } from "./entries.ts";
import { RecordReading } from "./entry-read.ts";
import { EntryReader } from "./entry-reader.ts";
import { EntryScan } from "./entry-scan.ts";
import { EntryWrite, type WritingHost } from "./entry-write.ts";
import { Leases } from "./lease.ts";
import { admit } from "./lease-admission.ts";
import type { NamespaceHost, OpenNamespace } from "./namespace-host.ts";
import { SharedCounters, SharedRecords } from "./shared-records.ts";

export class SharedNamespace implements OpenNamespace, FailoverSubject {
  readonly names: Spelling;
  readonly self: Namespace;
  readonly changes: ChangeLog;
  readonly counters: Counters;
  readonly records: OwnRecords;
  readonly #store: NamespaceHost;
  readonly #stamps: NamespaceStamps;
  readonly #entries: Entries;
  readonly #near: Near | undefined;
  readonly #reading: RecordReading;
  readonly #reader: EntryReader;
  readonly #scan: EntryScan;
  readonly #leases: Leases;
  readonly #clearSweep: ClearSweep;
  readonly #writing: WritingHost;
  readonly #children = new Map<string, SharedNamespace>();

  constructor(
    store: NamespaceHost,
    names: Spelling,
    ancestors: readonly string[],
    changes: ChangeLog,
    self?: Namespace,
  ) {
    this.self = self ?? this;
    this.#store = store;
    this.names = names;
    this.changes = changes;
    this.records = new SharedRecords(store, names);
    this.counters = new SharedCounters(this.records);
    this.#stamps = new NamespaceStamps(store.stamps, names, ancestors);
    this.#entries = new Entries(store, names, this.#stamps);
    this.#near = nearTierOf(store);
    this.#reading = new RecordReading(store, names, this.#stamps, this.#entries, this.#near);
    this.#reader = new EntryReader(this.#reading);
    this.#scan = new EntryScan(store, names, this.#entries);
    this.#leases = new Leases(store, names, changes, this.#stamps, this.#entries);
    this.#clearSweep = new ClearSweep(store, names, this.#stamps, this.#scan);
    this.#writing = {
      store,
      stamps: this.#stamps,
      entries: this.#entries,
      changed: (key) => this.#changed(key),
      removalOf: (key) => this.#removals([key]),
    };
    store.opened(this);
  }

  child(name: string, face?: NamespaceFace): Namespace {
    let child = this.#children.get(name);
    if (child === undefined) {
      child = new SharedNamespace(
        this.#store,
        this.names.child(name),
        this.#stamps.namespaceKeys,
        face?.changes ?? new ChangeLog(this.changes),
        face?.self,
      );
      this.#children.set(name, child);
    }
    return child;
  }

  get stampKey(): string {
    return this.names.namespaceStamp();
  }

  noteKey(anchor: string): string {
    return this.names.own(`server${anchor}`);
  }

  pushed(spelled: string | undefined): void {
    if (spelled === undefined) this.#near?.clear();
    else this.#near?.drop(this.names.keyOf(spelled), spelled);
  }

  peek(key: string): unknown {
    const value = this.#near?.peek(key);
    return value === undefined ? undefined : this.#reading.own(value);
  }

  get freezes(): boolean {
    return this.#store.near?.values === "frozen";
  }

  own(value: unknown): unknown {
    if (!this.freezes) return this.#store.codec.copy(value);
    return isMadeFrozen(value) ? value : frozen(this.#store.codec.copy(value));
  }

  get(key: string, callback: ReadCallback<unknown>): void {
    this.#reader.get(key, callback);
  }

  seek(key: string, callback: ReadCallback<Found | undefined>): void {
    this.#reader.seek(key, callback);
  }

  find(key: string): Promise<Found | undefined> {
    return new Promise((answered, failed) => this.#reader.seek(key, { answered, failed }));
  }

  getMany(keys: readonly string[]): Promise<Map<string, unknown>> {
    return this.#reader.getMany(keys);
  }

  admit(key: string, options: AdmissionOptions): Promise<Admission> {
    return admit(this.#leases, key, options);
  }

  set(key: string, value: unknown, options: EntryOptions, observer?: WriteObserver): Promise<void> {
    const payload = this.#store.codec.encode(value);
    this.#changed(key);
    return new Promise((resolve, reject) => {
      const writing = { key, payload, options, observer, resolve, reject };
      this.#store.guard.begin(new EntryWrite(this.#writing, writing));
    });
  }

  async setMany(entries: readonly (readonly [string, unknown])[], options: EntryOptions): Promise<void> {
    const payloads = entries.map(([key, value]) => [key, this.#store.codec.encode(value)] as const);
    const keys = entries.map(([key]) => key);
    await this.#changeEntries<void>("set", keys, (call) => this.#stampAndWrite(payloads, options, call));
  }

  delete(keys: readonly string[], unread = false): Promise<number> {
    return this.#changeEntries("delete", keys, async () => {
      const { backend } = this.#store;
      const spelled = keys.map(this.names.entry);
      const records = unread
        ? await Promise.all(spelled.map((key) => backend.takeUnread(key)))
        : await backend.takeMany(spelled);
      const live = await Promise.all(
        keys.map(async (key, at) => {
          const entry = entryOf(records[at], this.names.entry(key));
          return entry !== undefined && isFresh(entry, backend) && this.#stamps.isLive(entry);
        }),
      );
      return live.filter(Boolean).length;
    });
  }

  async invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): Promise<number> {
    const record = (): void => {
      this.changes.pattern(matches);
      this.#near?.dropMatching(matches);
    };
    record();
    let live = 0;
    try {
      // Leases are among the records: deleting one revokes a load in flight.
      for await (const batch of this.#scan.records(signal)) {
        const matched = batch.filter(({ key }) => matches(this.names.keyOf(key)));
        const keys = matched.map(({ key }) => this.names.keyOf(key));
        const hasLarge = matched.some(({ bytes }) => bytes >= LARGE_BYTES);
        if (keys.length > 0) live += await this.delete(keys, hasLarge);
      }
    } catch (error) {
      // Which keys remain is unknown, so the whole namespace is invalidated.
      this.#store.unconfirmed(() => this.#stamps.pendingForAll(), error);
      throw error;
    } finally {
      record();
    }
    return live;
  }

  invalidateTags(tags: readonly string[]): Promise<void> {
    return this.#change({
      operation: "invalidateTags",
      record: () => {
        for (const tag of tags) this.changes.tag(tag);
      },
      pending: () => this.#stamps.pendingFor(tags),
      start: (call) => settle(this.#stamps.invalidateTags(tags), call),
    });
  }

  async clear(): Promise<void> {
    await this.#change<void>({
      operation: "clear",
      record: () => this.changes.everything(),
      pending: () => this.#stamps.pendingForAll(),
      start: (call) => settle(this.#stamps.invalidateAll(), call),
    });
    this.#clearSweep.begin();
  }

  inspect(key: string): Promise<Inspection | undefined> {
    return this.#scan.inspect(key);
  }

  examine(key: string): Promise<Examination | undefined> {
    return this.#scan.examine(key);
  }

  preview(key: string, most: number): Promise<Preview | undefined> {
    return this.#scan.preview(key, most);
  }

  async sight(key: string): Promise<Sighting> {
    const tier = this.#near?.holds(key) ? "near" : undefined;
    const { backend, guard } = this.#store;
    return guard.run("explain", async () => {
      const record = await backend.readHeader(this.names.entry(key));
      const entry = entryOf(record, this.names.entry(key));
      const isLeased =
        record?.kind === "lease" &&
        record.expires > backend.now() &&
        (await this.#stamps.invalidationOf(record)) === undefined;
      return { entry: entry && (await this.#entries.sighted(entry)), tier, isLeased };
    });
  }

  scan(options?: EntryScanOptions): AsyncIterable<readonly Inspection[]> {
    return this.#scan.scan(options);
  }

  usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    return this.#scan.usage(exact, signal);
  }

  #change<T>({ operation, record, pending, start }: Change<T>): Promise<T> {
    record();
    const { failovers } = this.#store;
    return new Promise((resolve, reject) => {
      this.#store.guard.call<T>(
        operation,
        start,
        (result) => {
          record();
          // It may take several round trips, of which the former server has answered the first ones.
          if (this.#store.failovers !== failovers) this.#store.interrupted(pending);
          resolve(result);
          // Bookkeeping for a failover; the caller does not wait for it.
          atEndOfTurn(() => this.#store.confirmed(pending));
        },
        (error) => {
          record();
          this.#store.unconfirmed(pending, error);
          reject(error);
        },
      );
    });
  }

  #changeEntries<T>(
    operation: string,
    keys: readonly string[],
    work: (call: Outcome<T>) => Promise<T>,
  ): Promise<T> {
    return this.#change({
      operation,
      record: () => {
        for (const key of keys) this.#changed(key);
      },
      pending: () => this.#removals(keys),
      start: (call) => settle(work(call), call),
    });
  }

  #removals(keys: readonly string[]): readonly PendingInvalidation[] {
    return keys.map((key) => ({ key: this.names.entry(key), stampMs: undefined, root: this.#stamps.root }));
  }

  /** This process changes an entry: its loads in flight and its near copy no longer count. */
  #changed(key: string): void {
    this.changes.key(key);
    this.#near?.drop(key, this.names.entry(key));
  }

  async #stampAndWrite(
    payloads: readonly (readonly [string, Entry["payload"]])[],
    options: EntryOptions,
    call: Outcome<void>,
  ): Promise<void> {
    const lifetimeMs = options.ttlMs + options.staleMs;
    const stamps =
      this.#stamps.presentNow(options.tags, lifetimeMs) ??
      (await this.#stamps.present(options.tags, lifetimeMs));
    if (call.isOver) return;
    const items = payloads.map(([key, payload]) => this.#entries.item(key, payload, options, stamps));
    await this.#store.backend.writeMany(items, call);
  }
}

/** An operation that changes the store. */
interface Change<T> {
  readonly operation: string;
  /** Records the change in this process; called when it begins and again when it ends. */
  record(): void;
  /** What is delivered later if the store turns out not to have done it. */
  pending(): readonly PendingInvalidation[];
  start(call: Outcome<T>): void;
}

/**
 * The namespace's near tier: kept coherent by the store's pushes, or compared with the store at every hit. None where
 * none is configured, or the store can do neither.
 */
function nearTierOf({ near, backend, clock, stamps }: NamespaceHost): Near | undefined {
  const { push, versionNow } = backend;
  if (near === undefined) return undefined;
  if (pushesChanges(push))
    return new PushedNear({ page: near.page(), push, backend, clock, checks: stamps.checks });
  return versionNow && new ComparedNear({ page: near.page(), backend, versionNow, clock });
}
