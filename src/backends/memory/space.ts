// One namespace of the memory store: every answer is at hand, so nothing here waits.
import { setImmediate as nextTurn } from "node:timers/promises";
import { requireShareable } from "../../core/arguments.ts";
import { Changes } from "../../core/changes.ts";
import type { Clock } from "../../core/clock.ts";
import type { Codec } from "../../core/codec.ts";
import { CodecError } from "../../core/errors.ts";
import type {
  Admission,
  AdmissionOptions,
  Found,
  Inspection,
  Space,
  SpaceUsage,
  Terms,
} from "../../core/space.ts";
import { type MemorySeal, SealRing } from "./seal.ts";
import type { SlotIndex, Slots } from "./slots.ts";

/** What the namespaces of a memory store share. */
export interface MemoryCore {
  readonly slots: Slots<MemorySeal>;
  readonly clock: Clock;
  readonly codec: Codec;
  /** Hand out the stored object itself instead of a copy. */
  readonly sharesValues: boolean;
  /** Whether every value is measured, because the store is bounded by bytes. */
  readonly measuresBytes: boolean;
}

/** Nearer to its expiry than this, an entry is judged by the exact time; see Clock.coarse. */
const EXPIRY_IS_NEAR_MS = 5_000;
/** How many entries a scan looks at before it lets others run. */
const SCAN_BATCH = 1_000;
/** Up to so many entries are counted one by one, without being asked to be exact. */
const COUNTED = 1_000;
/** How many entries are measured to estimate the bytes of all. */
const SIZE_SAMPLE = 100;

export class MemorySpace implements Space {
  readonly changes: Changes;
  readonly index: SlotIndex;
  readonly #core: MemoryCore;
  readonly #slots: Slots<MemorySeal>;
  readonly #seals: SealRing;
  readonly #children = new Map<string, MemorySpace>();
  readonly #onOpen: (space: MemorySpace) => void;

  constructor(core: MemoryCore, onOpen: (space: MemorySpace) => void, parent?: MemorySpace) {
    this.#core = core;
    this.#slots = core.slots;
    this.#onOpen = onOpen;
    this.index = core.slots.openIndex();
    this.changes = new Changes(parent?.changes);
    this.#seals = new SealRing(parent === undefined ? undefined : parent.#seals);
    onOpen(this);
  }

  child(name: string): MemorySpace {
    let space = this.#children.get(name);
    if (space === undefined) {
      space = new MemorySpace(this.#core, this.#onOpen, this);
      this.#children.set(name, space);
    }
    return space;
  }

  peek(key: string): unknown {
    const slot = this.#fresh(key);
    if (slot < 0) return undefined;
    this.#slots.touch(slot);
    const value = this.#slots.values[slot];
    return this.#core.sharesValues ? value : this.#core.codec.copyTrusted(value);
  }

  get(key: string): unknown {
    return this.peek(key);
  }

  getMany(keys: readonly string[]): Map<string, unknown> {
    const values = new Map<string, unknown>();
    for (const key of keys) {
      const value = this.peek(key);
      if (value !== undefined) values.set(key, value);
    }
    return values;
  }

  set(key: string, value: unknown, terms: Terms): void {
    const kept = this.#kept(value);
    const bytes = this.#measure(key, kept);
    if (this.changes.watched) this.changes.key(key);
    this.#put(key, kept, bytes, terms);
  }

  /** All or none: what cannot be stored is found before anything is. */
  setMany(entries: readonly (readonly [string, unknown])[], terms: Terms): void {
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
      if (this.#fresh(key) >= 0) live++;
      this.#slots.remove(this.index, key);
    }
    return live;
  }

  inspect(key: string): Inspection | undefined {
    const slot = this.#fresh(key);
    return slot < 0 ? undefined : this.#inspection(key, slot);
  }

  async *scan(signal?: AbortSignal): AsyncIterable<readonly Inspection[]> {
    for await (const keys of this.#batches(signal)) {
      const batch: Inspection[] = [];
      for (const key of keys) {
        const slot = this.#fresh(key);
        if (slot >= 0) batch.push(this.#inspection(key, slot));
      }
      yield batch;
    }
  }

  invalidateTags(tags: readonly string[]): void {
    for (const tag of tags) {
      this.changes.tag(tag);
      this.#seals.invalidate(tag);
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
    this.#seals.invalidateAll();
  }

  async usage(exact: boolean): Promise<SpaceUsage> {
    if (!exact && this.index.size > COUNTED) {
      return { keys: this.index.size, bytes: this.#estimatedBytes(), approximate: true };
    }
    let keys = 0;
    let bytes = 0;
    for await (const batch of this.scan()) {
      keys += batch.length;
      for (const item of batch) bytes += item.bytes;
    }
    return { keys, bytes, approximate: false };
  }

  find(key: string): Found | undefined {
    const slot = this.#live(key);
    if (slot < 0) return undefined;
    const now = this.#core.clock.now();
    if (now >= this.#slots.staleUntilOf(slot)) return undefined;
    const expiredForMs = Math.max(0, now - (this.#slots.expires[slot] as number));
    const fresh = now < (this.#slots.expires[slot] as number);
    return { value: this.own(this.#slots.values[slot]), fresh, expiredForMs };
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
    for (const key of this.index.keys()) {
      if (signal?.aborted) break;
      batch.push(key);
      if (batch.length < SCAN_BATCH) continue;
      yield batch;
      batch = [];
      await nextTurn();
    }
    if (!signal?.aborted) yield batch;
  }

  /** The slot of an entry whose stamps are all alive, else -1. */
  #live(key: string): number {
    const slot = this.index.get(key);
    if (slot === undefined || !(this.#slots.seals[slot] as MemorySeal).isLive()) return -1;
    return slot;
  }

  #fresh(key: string): number {
    const slot = this.#live(key);
    if (slot < 0) return slot;
    const expires = this.#slots.expires[slot] as number;
    const { clock } = this.#core;
    if (expires - clock.coarse() > EXPIRY_IS_NEAR_MS) return slot;
    return clock.now() < expires ? slot : -1;
  }

  #kept(value: unknown): unknown {
    if (!this.#core.sharesValues) return this.#core.codec.copy(value);
    requireShareable(value);
    return value;
  }

  #measure(key: string, value: unknown): number {
    if (!this.#core.measuresBytes) return 0;
    const bytes = bytesOf(this.#core.codec, key, value);
    if (bytes <= this.#slots.maxBytes) return bytes;
    throw new CodecError(
      "VALUE_TOO_LARGE",
      `the value takes about ${bytes} bytes, more than the whole store may hold (${this.#slots.maxBytes} bytes)`,
      { hint: "Raise maxBytes or store less under one key." },
    );
  }

  #put(key: string, value: unknown, bytes: number, terms: Terms): void {
    const now = this.#core.clock.now();
    const expires = now + terms.ttlMs;
    const seal = this.#seals.seal(terms.tags);
    this.#slots.put(this.index, key, value, seal, now, expires, expires + terms.staleMs, bytes);
  }

  #inspection(key: string, slot: number): Inspection {
    const now = this.#core.clock.now();
    const value = this.#slots.values[slot];
    const { codec } = this.#core;
    return {
      key,
      // Time may have passed since the entry was found fresh.
      ttlMs: Math.max(0, (this.#slots.expires[slot] as number) - now),
      ageMs: Math.max(0, now - this.#slots.createdOf(slot)),
      tags: (this.#slots.seals[slot] as MemorySeal).tags,
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
    for (const [key, slot] of this.index) {
      bytes += bytesOf(this.#core.codec, key, this.#slots.values[slot]);
      if (++measured === SIZE_SAMPLE) break;
    }
    return measured === 0 ? 0 : Math.round((bytes / measured) * this.index.size);
  }
}

function bytesOf(codec: Codec, key: string, value: unknown): number {
  return codec.sizeOf(value) + key.length * 2;
}
