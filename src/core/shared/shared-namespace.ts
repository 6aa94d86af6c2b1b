// One namespace of a shared store: what is written, invalidated and listed there.
import { ChangeLog } from "../change-log.ts";
import type { Counters } from "../counters.ts";
import { atEndOfTurn } from "../event-loop.ts";
import type { FailoverSubject } from "../invalidation/failover.ts";
import { entryOf, isFresh } from "../invalidation/liveness.ts";
import { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { PendingInvalidation } from "../invalidation/outbox.ts";
import type { Spelling } from "../keys.ts";
import type {
  Admission,
  AdmissionOptions,
  EntryOptions,
  Found,
  Inspection,
  Namespace,
  NamespaceUsage,
  ReadCallback,
  WriteObserver,
} from "../namespace.ts";
import type { Near } from "../near/pushed-near.ts";
import type { Entry } from "../record.ts";
import { settle } from "../resilience/guard.ts";
import type { Outcome } from "../resilience/guarded-call.ts";
import { ClearSweep } from "./clear-sweep.ts";
import { Entries } from "./entries.ts";
import { EntryReader } from "./entry-reader.ts";
import { EntryScan } from "./entry-scan.ts";
import { admit, type LeaseHost } from "./lease.ts";
import type { NamespaceHost, OpenNamespace } from "./namespace-host.ts";
import { nearNamespace } from "./near-space.ts";
import { RecordReading } from "./record-reading.ts";
import { SharedCounters } from "./shared-counters.ts";
import { SharedLeases } from "./shared-leases.ts";

export class SharedNamespace implements OpenNamespace, FailoverSubject {
  readonly names: Spelling;
  readonly changes: ChangeLog;
  readonly counters: Counters;
  readonly #store: NamespaceHost;
  readonly #seals: NamespaceStamps;
  readonly #entries: Entries;
  readonly #near: Near | undefined;
  readonly #reading: RecordReading;
  readonly #reader: EntryReader;
  readonly #listing: EntryScan;
  readonly #leases: LeaseHost;
  readonly #clearing: ClearSweep;
  readonly #children = new Map<string, SharedNamespace>();

  constructor(store: NamespaceHost, names: Spelling, ancestors: readonly string[], changes: ChangeLog) {
    this.#store = store;
    this.names = names;
    this.changes = changes;
    this.counters = new SharedCounters(store, names);
    this.#seals = new NamespaceStamps(store.stamps, names, ancestors);
    this.#entries = new Entries(store, names, this.#seals);
    this.#near = nearNamespace(store);
    this.#reading = new RecordReading(store, names, this.#seals, this.#entries, this.#near);
    this.#reader = new EntryReader(this.#reading);
    this.#listing = new EntryScan(store, names, this.#entries);
    this.#leases = new SharedLeases(store, names, changes, this.#seals, this.#entries);
    this.#clearing = new ClearSweep(store, names, this.#seals, this.#listing);
    store.opened(this);
  }

  child(name: string): Namespace {
    let space = this.#children.get(name);
    if (space === undefined) {
      space = new SharedNamespace(
        this.#store,
        this.names.child(name),
        this.#seals.lineage,
        new ChangeLog(this.changes),
      );
      this.#children.set(name, space);
    }
    return space;
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

  own(value: unknown): unknown {
    return this.#store.codec.copy(value);
  }

  get(key: string, asker: ReadCallback<unknown>): void {
    this.#reader.get(key, asker);
  }

  seek(key: string, asker: ReadCallback<Found | undefined>): void {
    this.#reader.seek(key, asker);
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

  set(key: string, value: unknown, terms: EntryOptions, told?: WriteObserver): Promise<void> {
    const payload = this.#store.codec.encode(value);
    this.#changed(key);
    return new Promise((resolve, reject) => {
      this.#store.guard.ask<void>(
        "set",
        (call) => this.#write(key, payload, terms, call),
        () => {
          this.#changed(key);
          this.#store.confirmed(() => this.#removals([key]));
          told?.written(key, terms.tags);
          resolve();
        },
        (error) => {
          this.#changed(key);
          this.#store.unconfirmed(() => this.#removals([key]), error);
          reject(told === undefined ? error : told.notWritten(error));
        },
      );
    });
  }

  async setMany(entries: readonly (readonly [string, unknown])[], terms: EntryOptions): Promise<void> {
    const payloads = entries.map(([key, value]) => [key, this.#store.codec.encode(value)] as const);
    const keys = entries.map(([key]) => key);
    await this.#changeEntries<void>("set", keys, (call) => this.#sealAndWrite(payloads, terms, call));
  }

  delete(keys: readonly string[]): Promise<number> {
    return this.#changeEntries("delete", keys, async () => {
      const { backend } = this.#store;
      const records = await backend.takeMany(keys.map(this.names.entry));
      const live = await Promise.all(
        keys.map(async (key, at) => {
          const entry = entryOf(records[at], this.names.entry(key));
          return entry !== undefined && isFresh(entry, backend) && this.#seals.isLive(entry);
        }),
      );
      return live.filter(Boolean).length;
    });
  }

  async invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): Promise<number> {
    const noted = (): void => {
      this.changes.pattern(matches);
      this.#near?.dropMatching(matches);
    };
    noted();
    let live = 0;
    try {
      // Leases are among the records: a first load under way is revoked like a stored value.
      for await (const batch of this.#listing.records(signal)) {
        const keys = batch.map(({ key }) => this.names.keyOf(key)).filter(matches);
        if (keys.length > 0) live += await this.delete(keys);
      }
    } catch (error) {
      // Which keys there are is not known: what could not be removed goes with the namespace.
      this.#store.unconfirmed(() => this.#seals.pendingForAll(), error);
      throw error;
    } finally {
      noted();
    }
    return live;
  }

  invalidateTags(tags: readonly string[]): Promise<void> {
    return this.#change({
      operation: "invalidateTags",
      noted: () => {
        for (const tag of tags) this.changes.tag(tag);
      },
      remedies: () => this.#seals.pendingFor(tags),
      start: (call) => settle(this.#seals.invalidateTags(tags), call),
    });
  }

  async clear(): Promise<void> {
    await this.#change<void>({
      operation: "clear",
      noted: () => this.changes.everything(),
      remedies: () => this.#seals.pendingForAll(),
      start: (call) => settle(this.#seals.invalidateAll(), call),
    });
    this.#clearing.begin();
  }

  inspect(key: string): Promise<Inspection | undefined> {
    return this.#listing.inspect(key);
  }

  scan(signal?: AbortSignal): AsyncIterable<readonly Inspection[]> {
    return this.#listing.scan(signal);
  }

  usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    return this.#listing.usage(exact, signal);
  }

  #change<T>({ operation, noted, remedies, start }: Change<T>): Promise<T> {
    noted();
    return new Promise((resolve, reject) => {
      this.#store.guard.ask<T>(
        operation,
        start,
        (result) => {
          noted();
          resolve(result);
          // Whoever waits for the answer need not wait for this.
          atEndOfTurn(() => this.#store.confirmed(remedies));
        },
        (error) => {
          noted();
          this.#store.unconfirmed(remedies, error);
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
      noted: () => {
        for (const key of keys) this.#changed(key);
      },
      remedies: () => this.#removals(keys),
      start: (call) => settle(work(call), call),
    });
  }

  #removals(keys: readonly string[]): readonly PendingInvalidation[] {
    return keys.map((key) => ({ key: this.names.entry(key), stampMs: undefined, root: this.#seals.root }));
  }

  /** This process changes an entry: what is at hand of it counts no more. */
  #changed(key: string): void {
    this.changes.key(key);
    this.#near?.drop(key, this.names.entry(key));
  }

  #write(key: string, payload: Entry["payload"], terms: EntryOptions, call: Outcome<void>): void {
    const seal = this.#seals.presentNow(terms.tags, terms.ttlMs + terms.staleMs);
    if (seal === undefined) settle(this.#sealAndWrite([[key, payload]], terms, call), call);
    else
      this.#store.backend.writeThen(
        this.#entries.item(key, payload, terms, seal),
        () => call.succeed(),
        (error) => call.fail(error),
        call,
      );
  }

  async #sealAndWrite(
    payloads: readonly (readonly [string, Entry["payload"]])[],
    terms: EntryOptions,
    call: Outcome<void>,
  ): Promise<void> {
    const seal = await this.#seals.present(terms.tags, terms.ttlMs + terms.staleMs);
    // What makes up for it may have been carried out already: written now, it would come back.
    if (call.isOver) return;
    const items = payloads.map(([key, payload]) => this.#entries.item(key, payload, terms, seal));
    await this.#store.backend.writeMany(items, call);
  }
}

/** Something that changes the store. */
interface Change<T> {
  readonly operation: string;
  /** Tells this process of it: when it begins and again when it is over. */
  noted(): void;
  /** What makes up for it if the store turns out not to have done it. */
  remedies(): readonly PendingInvalidation[];
  start(call: Outcome<T>): void;
}
