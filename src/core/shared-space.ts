// One namespace of a shared store: entries sealed with stamps, read and written through the guard.
import type { Backend, ScanItem, SwapResult } from "./backend.ts";
import { Changes } from "./changes.ts";
import type { Clock } from "./clock.ts";
import type { Codec } from "./codec.ts";
import { UnsupportedError } from "./errors.ts";
import type { Guard } from "./guard.ts";
import type { Spelling } from "./keys.ts";
import { admit, type LeaseSpace } from "./lease.ts";
import { entryOf, expiredForMs, isFresh, lifetimeMs } from "./liveness.ts";
import type { Entry, Seal, StoreRecord, Token } from "./record.ts";
import { Seals } from "./seals.ts";
import type { Admission, AdmissionOptions, Found, Inspection, Space, SpaceUsage, Terms } from "./space.ts";
import type { StampBook } from "./stamps.ts";

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
}

export class SharedSpace implements Space, LeaseSpace {
  readonly store: SpaceStore;
  readonly names: Spelling;
  readonly changes: Changes;
  readonly #seals: Seals;
  readonly #children = new Map<string, SharedSpace>();
  readonly #reclaiming = new Set<string>();

  constructor(store: SpaceStore, names: Spelling, ancestors: readonly string[], changes: Changes) {
    this.store = store;
    this.names = names;
    this.changes = changes;
    this.#seals = new Seals(store.stamps, names, ancestors);
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

  /** The namespace, here or below, whose entry a spelled key is. */
  ownerOf(spelled: string): SharedSpace | undefined {
    if (spelled.startsWith(this.names.entryPrefix)) return this;
    for (const child of this.#children.values()) {
      const owner = child.ownerOf(spelled);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }

  peek(): undefined {
    return undefined;
  }

  own(value: unknown): unknown {
    return this.store.codec.copy(value);
  }

  get(key: string): Promise<unknown> {
    return this.store.guard.run("get", async () => {
      const entry = await this.#freshEntry(key, await this.store.backend.read(this.names.entry(key)));
      return entry === undefined ? undefined : this.store.codec.decode(entry.payload);
    });
  }

  getMany(keys: readonly string[]): Promise<Map<string, unknown>> {
    return this.store.guard.run("getMany", async () => {
      const records = await this.store.backend.readMany(keys.map(this.names.entry));
      const entries = await Promise.all(keys.map((key, at) => this.#freshEntry(key, records[at])));
      const values = new Map<string, unknown>();
      for (const [at, entry] of entries.entries()) {
        if (entry !== undefined) values.set(keys[at] as string, this.store.codec.decode(entry.payload));
      }
      return values;
    });
  }

  find(key: string): Promise<Found | undefined> {
    return this.store.guard.run("getOrSet", async () => {
      const record = await this.store.backend.read(this.names.entry(key));
      const entry = await this.#liveEntry(key, record);
      return entry === undefined ? undefined : this.foundOf(entry, record ?? entry);
    });
  }

  foundOf(entry: Entry, record: StoreRecord): Found {
    const { backend, codec } = this.store;
    const fresh = isFresh(entry, record, backend);
    const value = codec.decode(entry.payload);
    return { value, fresh, expiredForMs: fresh ? 0 : expiredForMs(entry, backend), record };
  }

  admit(key: string, options: AdmissionOptions): Promise<Admission> {
    return admit(this, key, options);
  }

  async set(key: string, value: unknown, terms: Terms): Promise<void> {
    await this.setMany([[key, value]], terms);
  }

  async setMany(entries: readonly (readonly [string, unknown])[], terms: Terms): Promise<void> {
    const payloads = entries.map(([, value]) => this.store.codec.encode(value));
    for (const [key] of entries) this.changes.key(key);
    try {
      await this.store.guard.run("set", async () => {
        const seal = await this.#seals.present(terms.tags, terms.ttlMs + terms.staleMs);
        const now = this.store.backend.now();
        await this.store.backend.writeMany(
          entries.map(([key], at) => {
            const record = this.#entry(key, payloads[at] as Entry["payload"], terms, seal);
            return { key: this.names.entry(key), record, lifetimeMs: lifetimeMs(record, now) };
          }),
        );
      });
    } finally {
      for (const [key] of entries) this.changes.key(key);
    }
  }

  async delete(keys: readonly string[]): Promise<number> {
    for (const key of keys) this.changes.key(key);
    try {
      return await this.store.guard.run("delete", async () => {
        const records = await this.store.backend.takeMany(keys.map(this.names.entry));
        const live = await Promise.all(
          keys.map(async (key, at) => {
            const entry = entryOf(records[at], key);
            if (entry === undefined || !isFresh(entry, records[at], this.store.backend)) return false;
            return this.#seals.isLive(entry);
          }),
        );
        return live.filter(Boolean).length;
      });
    } finally {
      for (const key of keys) this.changes.key(key);
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
    let live = 0;
    try {
      // Leases are among the records: a first load under way is revoked like a stored value.
      for await (const batch of this.#records(signal)) {
        const keys = batch.map(({ key }) => this.names.keyOf(key)).filter(matches);
        if (keys.length > 0) live += await this.delete(keys);
      }
    } finally {
      this.changes.pattern(matches);
    }
    return live;
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
      await this.store.guard.run("invalidateTags", () => this.#seals.invalidateTags(tags));
    } finally {
      for (const tag of tags) this.changes.tag(tag);
    }
  }

  async clear(): Promise<void> {
    this.changes.everything();
    try {
      await this.store.guard.run("clear", () => this.#seals.invalidateAll());
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

  #entry(key: string, payload: Entry["payload"], terms: Terms, seal: Seal): Entry {
    const created = this.store.backend.now();
    const expires = created + terms.ttlMs;
    return {
      kind: "entry",
      version: this.store.clock.token(),
      key,
      lineage: seal.lineage,
      tags: seal.tags,
      created,
      expires,
      staleUntil: expires + terms.staleMs,
      payload,
    };
  }

  /** The entry behind a record if it is sealed with present stamps; a dead one is reclaimed where it is met. */
  async #liveEntry(key: string, record: StoreRecord | undefined): Promise<Entry | undefined> {
    const entry = entryOf(record, key);
    if (entry === undefined) return undefined;
    if (await this.#seals.isLive(entry)) return entry;
    if (record === entry) this.#reclaim(key, entry);
    return undefined;
  }

  /** A live entry that has not expired. */
  async #freshEntry(key: string, record: StoreRecord | undefined): Promise<Entry | undefined> {
    const entry = await this.#liveEntry(key, record);
    return entry !== undefined && isFresh(entry, record, this.store.backend) ? entry : undefined;
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
      key: entry.key,
      ttlMs: Math.max(0, entry.expires - now),
      ageMs: Math.max(0, now - entry.created),
      tags: entry.tags.map(({ tag }) => tag),
      bytes,
    };
  }
}
