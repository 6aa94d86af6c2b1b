// One namespace of a shared store: entries sealed with stamps, read and written through the guard.
import type { Backend, Failed, KeyedRecord, ScanItem, SwapResult } from "./backend.ts";
import { Changes } from "./changes.ts";
import type { Clock } from "./clock.ts";
import type { Codec } from "./codec.ts";
import type { Continued } from "./continuity.ts";
import { CodecError, UnsupportedError } from "./errors.ts";
import type { Guard } from "./guard.ts";
import type { Spelling } from "./keys.ts";
import { admit, type LeaseSpace } from "./lease.ts";
import { entryOf, expiredForMs, isFresh, lifetimeMs } from "./liveness.ts";
import { NearSpace, type NearTier, tellsOfChanges } from "./near.ts";
import type { Remedy } from "./outbox.ts";
import type { WatchedRead } from "./read-watch.ts";
import type { Entry, Seal, StoreRecord, Token } from "./record.ts";
import { Seals } from "./seals.ts";
import type { Admission, AdmissionOptions, Found, Inspection, Space, SpaceUsage, Terms } from "./space.ts";
import type { StampBook } from "./stamps.ts";

/** What `#quickly` says when it cannot tell. */
const NOT_AT_ONCE: unique symbol = Symbol("not at once");

/** What the namespaces of a shared store have in common. */
export interface SpaceStore {
  readonly session: number;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly guard: Guard;
  readonly stamps: StampBook;
  report(error: Error): void;
  listen(key: string, listener: () => void): () => void;
  confirmed(remedies: readonly Remedy[]): void;
  unconfirmed(remedies: readonly Remedy[], error: unknown): void;
  /** The in-process tier, where there is one and the store keeps it coherent. */
  readonly near: NearTier | undefined;
}

export class SharedSpace implements Space, LeaseSpace, Continued {
  readonly store: SpaceStore;
  readonly names: Spelling;
  readonly changes: Changes;
  readonly #seals: Seals;
  readonly #near: NearSpace | undefined;
  readonly #children = new Map<string, SharedSpace>();
  readonly #reclaiming = new Set<string>();

  constructor(store: SpaceStore, names: Spelling, ancestors: readonly string[], changes: Changes) {
    this.store = store;
    this.names = names;
    this.changes = changes;
    this.#seals = new Seals(store.stamps, names, ancestors);
    this.#near = nearSpace(store);
  }

  child(name: string): Space {
    let space = this.#children.get(name);
    if (space === undefined) {
      space = new SharedSpace(
        this.store,
        this.names.child(name),
        this.#seals.lineage,
        new Changes(this.changes),
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

  /** The store says that a record has changed; undefined: any may have. */
  pushed(spelled: string | undefined): void {
    if (spelled === undefined) this.#near?.clear();
    else if (spelled.startsWith(this.names.entryPrefix)) this.#near?.drop(this.names.keyOf(spelled), spelled);
    for (const child of this.#children.values()) child.pushed(spelled);
  }

  /** The namespace, here or below, whose entry a spelled key is. */
  ownerOf(spelled: string): SharedSpace | undefined {
    if (spelled.startsWith(this.names.entryPrefix)) return this;
    for (const child of this.#children.values()) {
      const owner = child.ownerOf(spelled);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }

  peek(key: string): unknown {
    const value = this.#near?.peek(key);
    return value === undefined ? undefined : this.#handOut(value);
  }

  own(value: unknown): unknown {
    return this.store.codec.copy(value);
  }

  get(key: string, done: (value: unknown) => void, failed: Failed): void {
    this.store.guard.ask<unknown>(
      "get",
      (succeed, fail) => {
        this.#read(
          key,
          (record, read) => {
            const value = this.#quickly(key, record, read);
            if (value !== NOT_AT_ONCE) succeed(value);
            else
              this.#found(key, record, read).then(
                (found) => succeed(found?.fresh ? found.value : undefined),
                fail,
              );
          },
          fail,
        );
      },
      done,
      failed,
    );
  }

  seek(key: string, done: (found: Found | undefined) => void, failed: Failed): void {
    this.store.guard.ask<Found | undefined>(
      "getOrSet",
      (succeed, fail) => {
        const failedToRead = (error: unknown): void => {
          // A load puts something better in the place of what is damaged.
          this.#discarded(key, error).then((isGone) => (isGone ? succeed(undefined) : fail(error)), fail);
        };
        this.#read(
          key,
          (record, read) => {
            const value = this.#quickly(key, record, read);
            if (value === NOT_AT_ONCE) this.#found(key, record, read).then(succeed, failedToRead);
            else if (value === undefined || record === undefined) succeed(undefined);
            else succeed({ value, fresh: true, expiredForMs: 0, record });
          },
          failedToRead,
        );
      },
      done,
      failed,
    );
  }

  #read(
    key: string,
    done: (record: StoreRecord | undefined, read: WatchedRead | undefined) => void,
    failed: Failed,
  ): void {
    const spelled = this.names.entry(key);
    const read = this.#near?.begin(spelled);
    readThen(
      this.store.backend,
      spelled,
      (record) => {
        try {
          done(record, read);
        } catch (error) {
          failed(error);
        }
      },
      (error) => {
        if (read !== undefined) this.#near?.end(read);
        failed(error);
      },
    );
  }

  getMany(keys: readonly string[]): Promise<Map<string, unknown>> {
    return this.store.guard.run("getMany", async () => {
      const values = new Map<string, unknown>();
      const missing: string[] = [];
      for (const key of keys) {
        const value = this.peek(key);
        if (value === undefined) missing.push(key);
        else values.set(key, value);
      }
      const reads = missing.map((key) => this.#near?.begin(this.names.entry(key)));
      const records = await this.store.backend.readMany(missing.map(this.names.entry));
      const doubtful: Promise<void>[] = [];
      for (const [at, key] of missing.entries()) {
        const value = this.#quickly(key, records[at], reads[at]);
        if (value !== NOT_AT_ONCE) {
          if (value !== undefined) values.set(key, value);
          continue;
        }
        const found = this.#foundUnlessDamaged(key, records[at], reads[at]);
        doubtful.push(found.then((one) => void (one?.fresh && values.set(key, one.value))));
      }
      if (doubtful.length > 0) await Promise.all(doubtful);
      return values;
    });
  }

  find(key: string): Promise<Found | undefined> {
    return this.store.guard.run("getOrSet", async () => {
      try {
        return await this.#look(key);
      } catch (error) {
        // A load puts something better in its place.
        if (await this.#discarded(key, error)) return undefined;
        throw error;
      }
    });
  }

  foundOf(entry: Entry, record: StoreRecord): Found {
    const { backend, codec } = this.store;
    const fresh = isFresh(entry, backend);
    const value = codec.decode(entry.payload);
    return { value, fresh, expiredForMs: fresh ? 0 : expiredForMs(entry, backend), record };
  }

  admit(key: string, options: AdmissionOptions): Promise<Admission> {
    return admit(this, key, options);
  }

  set(key: string, value: unknown, terms: Terms): Promise<void> {
    const payload = this.store.codec.encode(value);
    const remedies = this.#removals([key]);
    this.#changed(key);
    return new Promise((resolve, reject) => {
      this.store.guard.ask<void>(
        "set",
        (succeed, fail) => {
          const seal = this.#seals.presentNow(terms.tags, terms.ttlMs + terms.staleMs);
          if (seal !== undefined)
            writeThen(this.store.backend, this.#item(key, payload, terms, seal), succeed, fail);
          else this.#sealAndWrite(key, payload, terms).then(succeed, fail);
        },
        () => {
          this.#changed(key);
          this.store.confirmed(remedies);
          resolve();
        },
        (error) => {
          this.#changed(key);
          this.store.unconfirmed(remedies, error);
          reject(error);
        },
      );
    });
  }

  async setMany(entries: readonly (readonly [string, unknown])[], terms: Terms): Promise<void> {
    const payloads = entries.map(([, value]) => this.store.codec.encode(value));
    for (const [key] of entries) this.#changed(key);
    try {
      await this.#remedied(this.#removals(entries.map(([key]) => key)), "set", async () => {
        const seal = await this.#seals.present(terms.tags, terms.ttlMs + terms.staleMs);
        await this.store.backend.writeMany(
          entries.map(([key], at) => this.#item(key, payloads[at] as Entry["payload"], terms, seal)),
        );
      });
    } finally {
      for (const [key] of entries) this.#changed(key);
    }
  }

  async delete(keys: readonly string[]): Promise<number> {
    for (const key of keys) this.#changed(key);
    try {
      return await this.#remedied(this.#removals(keys), "delete", async () => {
        const records = await this.store.backend.takeMany(keys.map(this.names.entry));
        const live = await Promise.all(
          keys.map(async (key, at) => {
            const entry = entryOf(records[at], this.names.entry(key));
            if (entry === undefined || !isFresh(entry, this.store.backend)) return false;
            return this.#seals.isLive(entry);
          }),
        );
        return live.filter(Boolean).length;
      });
    } finally {
      for (const key of keys) this.#changed(key);
    }
  }

  inspect(key: string): Promise<Inspection | undefined> {
    return this.store.guard.run("inspect", async () => {
      const entry = await this.#freshEntry(key, await this.store.backend.read(this.names.entry(key)));
      return entry === undefined ? undefined : this.#inspection(entry, entry.payload.bytes.length);
    });
  }

  async *scan(signal?: AbortSignal): AsyncIterable<readonly Inspection[]> {
    for await (const batch of this.#records(signal)) {
      const live = await Promise.all(
        batch.map(async ({ key, record, bytes }) => {
          const entry = await this.#freshEntry(this.names.keyOf(key), record);
          return entry === undefined ? undefined : this.#inspection(entry, bytes);
        }),
      );
      yield live.filter((item) => item !== undefined);
    }
  }

  async invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): Promise<number> {
    this.changes.pattern(matches);
    this.#near?.dropMatching(matches);
    let live = 0;
    try {
      // Leases are among the records: a first load under way is revoked like a stored value.
      for await (const batch of this.#records(signal)) {
        const keys = batch.map(({ key }) => this.names.keyOf(key)).filter(matches);
        if (keys.length > 0) live += await this.delete(keys);
      }
    } finally {
      this.changes.pattern(matches);
      this.#near?.dropMatching(matches);
    }
    return live;
  }

  /** Runs what changes the store. What makes up for it is kept until the store is known to have done it. */
  async #remedied<T>(remedies: readonly Remedy[], operation: string, change: () => Promise<T>): Promise<T> {
    try {
      const result = await this.store.guard.run(operation, change);
      this.store.confirmed(remedies);
      return result;
    } catch (error) {
      this.store.unconfirmed(remedies, error);
      throw error;
    }
  }

  #removals(keys: readonly string[]): readonly Remedy[] {
    return keys.map((key) => ({ key: this.names.entry(key), stampMs: undefined, root: this.#seals.root }));
  }

  /** Every record under this namespace's entry keys, each batch within the deadline. */
  async *#records(signal?: AbortSignal): AsyncIterable<readonly ScanItem[]> {
    const { backend } = this.store;
    if (!backend.capabilities.scan) {
      throw new UnsupportedError(`the ${backend.name} store cannot list keys`, {
        operation: "keys",
        hint: "Keep the keys you need to list under a tag, or use a store that can scan.",
      });
    }
    const batches = backend.scan(this.names.entryPrefix, signal === undefined ? {} : { signal });
    const iterator = batches[Symbol.asyncIterator]();
    try {
      for (;;) {
        if (signal?.aborted) return;
        const next = await this.store.guard.run("keys", async () => iterator.next());
        if (next.done) return;
        yield next.value;
      }
    } finally {
      // Not awaited: behind a batch that never comes it would never come either.
      iterator.return?.().catch(this.store.report);
    }
  }

  async invalidateTags(tags: readonly string[]): Promise<void> {
    for (const tag of tags) this.changes.tag(tag);
    try {
      await this.#remedied(this.#seals.remediesFor(tags), "invalidateTags", () =>
        this.#seals.invalidateTags(tags),
      );
    } finally {
      for (const tag of tags) this.changes.tag(tag);
    }
  }

  async clear(): Promise<void> {
    this.changes.everything();
    try {
      await this.#remedied(this.#seals.remedyForAll(), "clear", () => this.#seals.invalidateAll());
    } finally {
      this.changes.everything();
    }
  }

  async usage(exact: boolean): Promise<SpaceUsage> {
    if (!exact) {
      return this.store.guard.run("getStats", () => this.store.backend.usage(this.names.entryPrefix));
    }
    let keys = 0;
    let bytes = 0;
    for await (const batch of this.scan()) {
      keys += batch.length;
      for (const item of batch) bytes += item.bytes;
    }
    return { keys, bytes, approximate: false };
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.store.guard.run("getOrSet", () => this.store.backend.read(this.names.entry(key)));
  }

  swap(key: string, expected: Token | undefined, next: StoreRecord | undefined): Promise<SwapResult> {
    const { backend, guard } = this.store;
    return guard.run("getOrSet", () => {
      const spelled = this.names.entry(key);
      const lifeMs = next === undefined ? 0 : lifetimeMs(next, backend.now());
      return backend.swap(
        spelled,
        expected,
        next && lifeMs > 0 ? { record: next, lifetimeMs: lifeMs } : undefined,
      );
    });
  }

  sealFor(tags: readonly string[], lifeMs: number): Promise<Seal> {
    return this.store.guard.run("getOrSet", () => this.#seals.present(tags, lifeMs));
  }

  groupStamps(groups: readonly number[], anew = false): Promise<readonly (Token | undefined)[]> {
    return this.store.guard.run("getOrSet", () => this.#seals.groups(groups, anew));
  }

  entryFor(key: string, value: unknown, terms: Terms, seal: Seal): Entry {
    return this.#entry(key, this.store.codec.encode(value), terms, seal);
  }

  isSealed(seal: Seal): Promise<boolean> {
    return this.store.guard.run("getOrSet", async () => this.#seals.isLive(seal));
  }

  watchSeal(seal: Seal, onBroken: () => void): () => void {
    const stops = this.#seals.stampsOf(seal).map(([key, id]) => this.#watch(key, id, onBroken));
    return () => {
      for (const stop of stops) stop();
    };
  }

  #watch(stampKey: string, id: Token, onChange: () => void): () => void {
    return this.store.listen(stampKey, () => {
      // A push may only mean a longer life: the stamp itself tells.
      this.store.guard
        .run("getOrSet", () => this.store.stamps.confirm([stampKey]))
        .then(([present]) => {
          if (present !== id) onChange();
        }, this.store.report);
    });
  }

  #item(key: string, payload: Entry["payload"], terms: Terms, seal: Seal): KeyedRecord {
    const record = this.#entry(key, payload, terms, seal);
    return { key: record.key, record, lifetimeMs: lifetimeMs(record, record.created) };
  }

  async #sealAndWrite(key: string, payload: Entry["payload"], terms: Terms): Promise<void> {
    const seal = await this.#seals.present(terms.tags, terms.ttlMs + terms.staleMs);
    await this.store.backend.write(this.#item(key, payload, terms, seal));
  }

  #entry(key: string, payload: Entry["payload"], terms: Terms, seal: Seal): Entry {
    const created = this.store.backend.now();
    const expires = created + terms.ttlMs;
    return {
      kind: "entry",
      version: this.store.clock.token(),
      key: this.names.entry(key),
      lineage: seal.lineage,
      tags: seal.tags,
      created,
      expires,
      staleUntil: expires + terms.staleMs,
      payload,
    };
  }

  /** This process changes an entry: what is at hand of it counts no more. */
  #changed(key: string): void {
    this.changes.key(key);
    this.#near?.drop(key, this.names.entry(key));
  }

  /** The fresh value of a record just read, or undefined; NOT_AT_ONCE where the store has to be asked more. */
  #quickly(key: string, record: StoreRecord | undefined, read: WatchedRead | undefined): unknown {
    if (record === undefined) {
      if (read !== undefined) this.#near?.end(read);
      return undefined;
    }
    if (record.kind !== "entry" || !this.#seals.isKnownLive(record)) return NOT_AT_ONCE;
    if (!isFresh(record, this.store.backend)) return NOT_AT_ONCE;
    let value: unknown;
    try {
      value = this.store.codec.decode(record.payload);
    } catch {
      return NOT_AT_ONCE;
    }
    if (read === undefined) return value;
    this.#near?.keep(key, value, record, read, this.#seals.heldLineage(), this.#seals.heldTags(record));
    return this.#handOut(value);
  }

  /** Reads an entry, fresh or stale, and keeps it near if it may be. */
  async #look(key: string): Promise<Found | undefined> {
    const spelled = this.names.entry(key);
    const read = this.#near?.begin(spelled);
    let record: StoreRecord | undefined;
    try {
      record = await this.store.backend.read(spelled);
    } catch (error) {
      if (read !== undefined) this.#near?.end(read);
      throw error;
    }
    return this.#found(key, record, read);
  }

  async #found(
    key: string,
    record: StoreRecord | undefined,
    read: WatchedRead | undefined,
  ): Promise<Found | undefined> {
    let isKept = false;
    try {
      const entry = await this.#liveEntry(key, record);
      const found = entry === undefined ? undefined : this.foundOf(entry, record ?? entry);
      if (read === undefined || entry === undefined || found?.fresh !== true || record !== entry)
        return found;
      isKept = true;
      this.#near?.keep(key, found.value, entry, read, this.#seals.heldLineage(), this.#seals.heldTags(entry));
      return { ...found, value: this.#handOut(found.value) };
    } finally {
      if (read !== undefined && !isKept) this.#near?.end(read);
    }
  }

  /** Of many, one that cannot be read is as good as absent. */
  async #foundUnlessDamaged(
    key: string,
    record: StoreRecord | undefined,
    read: WatchedRead | undefined,
  ): Promise<Found | undefined> {
    try {
      return await this.#found(key, record, read);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.store.report(error);
      return undefined;
    }
  }

  /** Removes a record that is damaged; one of a newer version of xcache stays. Returns whether it was removed. */
  async #discarded(key: string, error: unknown): Promise<boolean> {
    if (!(error instanceof CodecError) || error.code !== "FRAME_INVALID") return false;
    this.store.report(error);
    await this.store.backend.take(this.names.entry(key)).catch((failure: unknown) => {
      // What was taken could not be read either.
      if (!(failure instanceof CodecError)) throw failure;
    });
    return true;
  }

  /** What is kept near stays as it is: a caller gets its own, unless values are shared. */
  #handOut(value: unknown): unknown {
    return this.store.near?.sharesValues === true ? value : this.store.codec.copyTrusted(value);
  }

  /** The entry behind a record if it is sealed with present stamps; a dead one is reclaimed where it is met. */
  async #liveEntry(key: string, record: StoreRecord | undefined): Promise<Entry | undefined> {
    const entry = entryOf(record, this.names.entry(key));
    if (entry === undefined) return undefined;
    if (await this.#seals.isLive(entry)) return entry;
    if (record === entry) this.#reclaim(key, entry);
    return undefined;
  }

  /** A live entry that has not expired. */
  async #freshEntry(key: string, record: StoreRecord | undefined): Promise<Entry | undefined> {
    const entry = await this.#liveEntry(key, record);
    return entry !== undefined && isFresh(entry, this.store.backend) ? entry : undefined;
  }

  #reclaim(key: string, dead: Entry): void {
    if (this.#reclaiming.has(key)) return;
    this.#reclaiming.add(key);
    this.swap(key, dead.version, undefined)
      .catch(this.store.report)
      .finally(() => this.#reclaiming.delete(key));
  }

  #inspection(entry: Entry, bytes: number): Inspection {
    const now = this.store.backend.now();
    return {
      key: this.names.keyOf(entry.key),
      ttlMs: Math.max(0, entry.expires - now),
      ageMs: Math.max(0, now - entry.created),
      tags: entry.tags.map(({ tag }) => tag),
      bytes,
    };
  }
}

function nearSpace({ near, backend, clock }: SpaceStore): NearSpace | undefined {
  const { push } = backend;
  if (near === undefined || !tellsOfChanges(push)) return undefined;
  return new NearSpace({ page: near.page(), push, backend, clock });
}

function readThen(
  backend: Backend,
  key: string,
  done: (record: StoreRecord | undefined) => void,
  failed: Failed,
): void {
  if (backend.readThen === undefined) backend.read(key).then(done, failed);
  else backend.readThen(key, done, failed);
}

function writeThen(backend: Backend, item: KeyedRecord, done: () => void, failed: Failed): void {
  if (backend.writeThen === undefined) backend.write(item).then(done, failed);
  else backend.writeThen(item, done, failed);
}
