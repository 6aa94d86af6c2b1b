// One namespace of the memory store; its operations are synchronous.

import { requireShareable } from "../../core/arguments.ts";
import { ChangeLog } from "../../core/change-log.ts";
import { COARSE_LAG_MS } from "../../core/clock.ts";
import { LocalCounters } from "../../core/counters.ts";
import { CodecError } from "../../core/errors.ts";
import type {
  Admission,
  AdmissionOptions,
  EntryOptions,
  EntryScanOptions,
  Examination,
  Found,
  Inspection,
  Namespace,
  NamespaceUsage,
  Preview,
  ReadCallback,
  Sighting,
  Ticket,
} from "../../core/namespace.ts";
import { LocalRecords } from "../../core/own-records.ts";
import { bytesOf, EntryView, handed, type MemoryCore } from "./entry-view.ts";
import { inSteps } from "./key-scans.ts";
import type { Page } from "./layout/page.ts";
import type { Table } from "./table.ts";
import { TagRing, type TagSet } from "./tag-set.ts";

/** From this ttl on the coarse clock is precise enough: its lag is at most a thousandth, and the entry expires early. */
const LONG_TTL_MS = 1_000 * COARSE_LAG_MS;

export class MemoryNamespace implements Namespace {
  readonly changes: ChangeLog;
  readonly counters: LocalCounters;
  readonly records: LocalRecords;
  readonly freezes: boolean;
  readonly page: Page;
  readonly #core: MemoryCore;
  readonly #table: Table<TagSet>;
  readonly #tags = new TagRing();
  readonly #children = new Map<string, MemoryNamespace>();
  readonly #view: EntryView;
  readonly #onOpen: (namespace: MemoryNamespace) => void;

  constructor(core: MemoryCore, onOpen: (namespace: MemoryNamespace) => void, parent?: MemoryNamespace) {
    this.#core = core;
    this.freezes = core.values === "frozen";
    this.#table = core.table;
    this.#onOpen = onOpen;
    this.page = core.table.openPage();
    this.#view = new EntryView(core, this.page);
    this.changes = new ChangeLog(parent?.changes);
    this.counters = new LocalCounters(core.clock);
    this.records = new LocalRecords(core.clock);
    onOpen(this);
  }

  child(name: string): MemoryNamespace {
    let namespace = this.#children.get(name);
    if (namespace === undefined) {
      namespace = new MemoryNamespace(this.#core, this.#onOpen, this);
      this.#children.set(name, namespace);
    }
    return namespace;
  }

  peek(key: string): unknown {
    const value = this.page.peek(key);
    const { values } = this.#core;
    if (value === undefined || values === "shared" || (values === "frozen" && Object.isFrozen(value)))
      return value;
    return this.#core.codec.copyTrusted(value);
  }

  get(key: string, callback: ReadCallback<unknown>): void {
    callback.answered(this.peek(key));
  }

  getMany(keys: readonly string[]): Map<string, unknown> {
    const values = new Map<string, unknown>();
    for (const key of keys) {
      const value = this.peek(key);
      if (value !== undefined) values.set(key, value);
    }
    return values;
  }

  set(key: string, value: unknown, options: EntryOptions): void {
    const stored = this.#stored(value);
    const bytes = this.#core.measuresBytes ? this.#measure(key, stored) : 0;
    if (this.changes.watched) this.changes.key(key);
    this.#put(key, stored, bytes, options);
  }

  /** All or nothing: values that cannot be stored are detected before the first write. */
  setMany(entries: readonly (readonly [string, unknown])[], options: EntryOptions): void {
    const ready = entries.map(([key, value]) => {
      const stored = this.#stored(value);
      return { key, stored, bytes: this.#measure(key, stored) };
    });
    for (const { key, stored, bytes } of ready) {
      if (this.changes.watched) this.changes.key(key);
      this.#put(key, stored, bytes, options);
    }
  }

  delete(keys: readonly string[]): number {
    let live = 0;
    for (const key of keys) {
      if (this.changes.watched) this.changes.key(key);
      if (this.#view.alive(key, false) !== undefined) live++;
      this.#table.remove(this.page, key);
    }
    return live;
  }

  inspect(key: string): Inspection | undefined {
    return this.#view.inspect(key);
  }

  examine(key: string): Examination | undefined {
    return this.#view.examine(key);
  }

  preview(key: string, most: number): Preview | undefined {
    return this.#view.preview(key, most);
  }

  sight(key: string): Sighting {
    return this.#view.sight(key);
  }

  scan(options?: EntryScanOptions): AsyncIterable<readonly Inspection[]> {
    return this.#view.scan(options);
  }

  usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    return this.#view.usage(exact, signal);
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
    for await (const keys of inSteps(this.page.keys(), signal)) live += this.delete(keys.filter(matches));
    this.changes.pattern(matches);
    return live;
  }

  clear(): void {
    this.changes.everything();
    this.#empty();
  }

  find(key: string): Found | undefined {
    const entry = this.#table.find(this.page, key);
    if (entry === undefined) return undefined;
    const now = this.#core.clock.now();
    if (now >= entry.staleUntil) return undefined;
    const expiredForMs = Math.max(0, now - entry.expires);
    return { value: this.own(entry.value), fresh: now < entry.expires, expiredForMs, id: entry.expires };
  }

  admit(key: string, { since, seen }: AdmissionOptions): Admission {
    return {
      found: undefined,
      ticket: new MemoryTicket(this, key, since),
      // Not what was found before: the load may return it, and it may have been invalidated since.
      stale: seen === undefined ? undefined : this.find(key),
    };
  }

  /** Stores the result of a load that began at `since`, unless something it depends on has changed. */
  commit(key: string, value: unknown, options: EntryOptions, since: number): boolean {
    const stored = this.#stored(value);
    const bytes = this.#measure(key, stored);
    if (this.changes.touched(key, options.tags, since)) return false;
    // Without a try to renew: what was loaded is nearly always new.
    this.#insert(key, stored, bytes, options, this.#expiryOf(options));
    return true;
  }

  own(value: unknown): unknown {
    return handed(this.#core, value);
  }

  #empty(): void {
    this.#table.clear(this.page);
    for (const child of this.#children.values()) child.#empty();
  }

  #stored(value: unknown): unknown {
    if (this.#core.values === "shared") requireShareable(value);
    return this.own(value);
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

  #put(key: string, value: unknown, bytes: number, options: EntryOptions): void {
    const expires = this.#expiryOf(options);
    const isPlain = options.tags.length === 0 && options.staleMs === 0;
    if (isPlain && this.#table.renew(this.page, key, value, expires)) return;
    this.#insert(key, value, bytes, options, expires);
  }

  #insert(key: string, value: unknown, bytes: number, options: EntryOptions, expires: number): void {
    const tagSet = this.#tags.tagSetFor(options.tags);
    this.#table.put(this.page, key, value, tagSet, expires, options.staleMs, bytes);
  }

  #expiryOf({ ttlMs }: EntryOptions): number {
    const { clock } = this.#core;
    return (ttlMs < LONG_TTL_MS ? clock.now() : clock.coarse()) + ttlMs;
  }
}

class MemoryTicket implements Ticket {
  readonly #namespace: MemoryNamespace;
  readonly #key: string;
  readonly #since: number;

  constructor(namespace: MemoryNamespace, key: string, since: number) {
    this.#namespace = namespace;
    this.#key = key;
    this.#since = since;
  }

  commit(value: unknown, options: EntryOptions): boolean {
    return this.#namespace.commit(this.#key, value, options, this.#since);
  }

  abandon(): void {}
}
