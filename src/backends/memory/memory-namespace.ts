// One namespace of the memory store: every answer is at hand, so nothing here waits.
import { requireShareable } from "../../core/arguments.ts";
import { ChangeLog } from "../../core/change-log.ts";
import { type Clock, COARSE_LAG_MS } from "../../core/clock.ts";
import type { Codec } from "../../core/codec.ts";
import { LocalCounters } from "../../core/counters.ts";
import { CodecError } from "../../core/errors.ts";
import { nextTurn } from "../../core/event-loop.ts";
import {
  type Admission,
  type AdmissionOptions,
  countedUsage,
  type EntryOptions,
  type Found,
  type Inspection,
  type Namespace,
  type NamespaceUsage,
  type ReadCallback,
} from "../../core/namespace.ts";
import { heldValue } from "./layout/box.ts";
import type { Page } from "./layout/page.ts";
import type { Held, Table } from "./table.ts";
import { TagRing, type TagSet } from "./tag-set.ts";

/** What the namespaces of a memory store share. */
export interface MemoryCore {
  readonly table: Table<TagSet>;
  readonly clock: Clock;
  readonly codec: Codec;
  /** Hand out the stored object itself instead of a copy. */
  readonly sharesValues: boolean;
  /** Whether every value is measured, because the store is bounded by bytes. */
  readonly measuresBytes: boolean;
}

/** A ttl of which the lag of the coarse time is a thousandth: then it may be counted from that, and end so much early. */
const LONG_TTL_MS = 1_000 * COARSE_LAG_MS;
/** How many entries a scan looks at before it lets others run, and how many characters of keys. */
const SCAN_BATCH = 1_000;
const SCAN_CHARACTERS = 64 * 1024;
/** Up to so many entries are counted one by one, without being asked to be exact. */
const COUNTED = 1_000;
/** How many entries are measured to estimate the bytes of all. */
const SIZE_SAMPLE = 100;

const NO_TAGS: readonly string[] = [];

export class MemoryNamespace implements Namespace {
  readonly changes: ChangeLog;
  readonly counters: LocalCounters;
  readonly page: Page;
  readonly #core: MemoryCore;
  readonly #table: Table<TagSet>;
  readonly #tags = new TagRing();
  readonly #children = new Map<string, MemoryNamespace>();
  readonly #onOpen: (space: MemoryNamespace) => void;

  constructor(core: MemoryCore, onOpen: (space: MemoryNamespace) => void, parent?: MemoryNamespace) {
    this.#core = core;
    this.#table = core.table;
    this.#onOpen = onOpen;
    this.page = core.table.openPage();
    this.changes = new ChangeLog(parent?.changes);
    this.counters = new LocalCounters(core.clock);
    onOpen(this);
  }

  child(name: string): MemoryNamespace {
    let space = this.#children.get(name);
    if (space === undefined) {
      space = new MemoryNamespace(this.#core, this.#onOpen, this);
      this.#children.set(name, space);
    }
    return space;
  }

  peek(key: string): unknown {
    const value = this.page.peek(key);
    return value === undefined || this.#core.sharesValues ? value : this.#core.codec.copyTrusted(value);
  }

  get(key: string, asker: ReadCallback<unknown>): void {
    asker.answered(this.peek(key));
  }

  getMany(keys: readonly string[]): Map<string, unknown> {
    const values = new Map<string, unknown>();
    for (const key of keys) {
      const value = this.peek(key);
      if (value !== undefined) values.set(key, value);
    }
    return values;
  }

  set(key: string, value: unknown, terms: EntryOptions): void {
    const kept = this.#kept(value);
    const bytes = this.#core.measuresBytes ? this.#measure(key, kept) : 0;
    if (this.changes.watched) this.changes.key(key);
    this.#put(key, kept, bytes, terms);
  }

  /** All or none: what cannot be stored is found before anything is. */
  setMany(entries: readonly (readonly [string, unknown])[], terms: EntryOptions): void {
    const ready = entries.map(([key, value]) => {
      const kept = this.#kept(value);
      return { key, kept, bytes: this.#measure(key, kept) };
    });
    for (const { key, kept, bytes } of ready) {
      if (this.changes.watched) this.changes.key(key);
      this.#put(key, kept, bytes, terms);
    }
  }

  delete(keys: readonly string[]): number {
    let live = 0;
    for (const key of keys) {
      if (this.changes.watched) this.changes.key(key);
      if (this.#fresh(key) !== undefined) live++;
      this.#table.remove(this.page, key);
    }
    return live;
  }

  inspect(key: string): Inspection | undefined {
    const entry = this.#fresh(key);
    return entry === undefined ? undefined : this.#inspection(key, entry);
  }

  async *scan(signal?: AbortSignal): AsyncIterable<readonly Inspection[]> {
    for await (const keys of this.#batches(signal)) {
      const batch: Inspection[] = [];
      for (const key of keys) {
        const entry = this.#fresh(key);
        if (entry !== undefined) batch.push(this.#inspection(key, entry));
      }
      yield batch;
    }
  }

  invalidateTags(tags: readonly string[]): void {
    for (const tag of tags) {
      this.changes.tag(tag);
      this.#tags.invalidate(tag);
    }
  }

  async invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): Promise<number> {
    this.changes.pattern(matches);
    let live = 0;
    for await (const keys of this.#batches(signal)) live += this.delete(keys.filter(matches));
    this.changes.pattern(matches);
    return live;
  }

  clear(): void {
    this.changes.everything();
    this.#empty();
  }

  async usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    if (!exact && this.page.size > COUNTED) {
      return { keys: this.page.size, bytes: this.#estimatedBytes(), approximate: true };
    }
    return countedUsage(this.scan(signal));
  }

  find(key: string): Found | undefined {
    const entry = this.#table.find(this.page, key);
    if (entry === undefined) return undefined;
    const now = this.#core.clock.now();
    if (now >= entry.staleUntil) return undefined;
    const expiredForMs = Math.max(0, now - entry.expires);
    return { value: this.own(entry.value), fresh: now < entry.expires, expiredForMs };
  }

  admit(key: string, { since }: AdmissionOptions): Admission {
    return {
      ticket: {
        commit: (value, terms) => {
          const kept = this.#kept(value);
          const bytes = this.#measure(key, kept);
          if (this.changes.touched(key, terms.tags, since)) return false;
          this.#put(key, kept, bytes, terms);
          return true;
        },
        abandon: () => {},
      },
    };
  }

  own(value: unknown): unknown {
    return this.#core.sharesValues ? value : this.#core.codec.copy(value);
  }

  /** Every key that is here from beginning to end; others may run in between. Keys added meanwhile do not prolong it. */
  async *#batches(signal?: AbortSignal): AsyncIterable<readonly string[]> {
    let batch: string[] = [];
    let characters = 0;
    for (const key of this.page.keys()) {
      if (signal?.aborted) break;
      batch.push(key);
      characters += key.length;
      if (batch.length < SCAN_BATCH && characters < SCAN_CHARACTERS) continue;
      yield batch;
      batch = [];
      characters = 0;
      await nextTurn();
    }
    if (!signal?.aborted) yield batch;
  }

  #fresh(key: string): Held<TagSet> | undefined {
    const entry = this.#table.find(this.page, key);
    return entry !== undefined && this.#core.clock.now() < entry.expires ? entry : undefined;
  }

  #empty(): void {
    this.#table.clear(this.page);
    for (const child of this.#children.values()) child.#empty();
  }

  #kept(value: unknown): unknown {
    if (!this.#core.sharesValues) return this.#core.codec.copy(value);
    requireShareable(value);
    return value;
  }

  #measure(key: string, value: unknown): number {
    if (!this.#core.measuresBytes) return 0;
    const bytes = bytesOf(this.#core.codec, key, value);
    if (bytes <= this.#table.maxBytes) return bytes;
    throw new CodecError(
      "VALUE_TOO_LARGE",
      `the value takes about ${bytes} bytes, more than the whole store may hold (${this.#table.maxBytes} bytes)`,
      { hint: "Raise maxBytes or store less under one key." },
    );
  }

  #put(key: string, value: unknown, bytes: number, terms: EntryOptions): void {
    const { clock } = this.#core;
    const expires = (terms.ttlMs < LONG_TTL_MS ? clock.now() : clock.coarse()) + terms.ttlMs;
    if (terms.tags.length === 0 && terms.staleMs === 0 && this.#table.renew(this.page, key, value, expires))
      return;
    const seal = this.#tags.tagSetFor(terms.tags);
    this.#table.put(this.page, key, value, seal, expires, terms.staleMs, bytes);
  }

  #inspection(key: string, { value, seal, expires }: Held<TagSet>): Inspection {
    const now = this.#core.clock.now();
    const { codec } = this.#core;
    return {
      key,
      // Time may have passed since the entry was found fresh.
      ttlMs: Math.max(0, expires - now),
      tags: seal === undefined ? NO_TAGS : seal.tags,
      // Measured only for those who ask: it looks through the whole value.
      get bytes() {
        return bytesOf(codec, key, value);
      },
    };
  }

  /** From the first entries, not from all of them: cheap on any size. */
  #estimatedBytes(): number {
    let measured = 0;
    let bytes = 0;
    for (const key of this.page.keys()) {
      bytes += bytesOf(this.#core.codec, key, heldValue(this.page.held(key)));
      if (++measured === SIZE_SAMPLE) break;
    }
    return measured === 0 ? 0 : Math.round((bytes / measured) * this.page.size);
  }
}

function bytesOf(codec: Codec, key: string, value: unknown): number {
  return codec.sizeOf(value) + key.length * 2;
}
