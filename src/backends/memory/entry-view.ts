// Looks at the entries of a namespace of the memory store, which does not count as use, and how values enter and leave it.
import type { Clock } from "../../core/clock.ts";
import type { Copier } from "../../core/codec.ts";
import { frozen, type Handing, isMadeFrozen } from "../../core/frozen.ts";
import {
  countedUsage,
  type EntryScanOptions,
  type Examination,
  type Inspection,
  type NamespaceUsage,
  type Preview,
  type Sighting,
} from "../../core/namespace.ts";
import { inSteps, KeyScans } from "./key-scans.ts";
import { heldValue } from "./layout/box.ts";
import type { Page } from "./layout/page.ts";
import type { Held, Table } from "./table.ts";
import type { TagSet } from "./tag-set.ts";

/** Up to this many entries, usage is exact without being asked to be. */
const COUNTED = 1_000;
/** Entries measured to estimate the bytes of all. */
const SIZE_SAMPLE = 100;

const NO_TAGS: readonly string[] = [];

/** What the namespaces of a memory store share. */
export interface MemoryCore {
  readonly table: Table<TagSet>;
  readonly clock: Clock;
  readonly codec: Copier;
  /** What callers get of the stored objects. */
  readonly values: Handing;
  /** Whether values are measured because the store is bounded by bytes. */
  readonly measuresBytes: boolean;
}

/** What the store keeps of a caller's value, and a caller gets of a stored one. */
export function handed({ values, codec }: MemoryCore, value: unknown): unknown {
  if (values === "shared") return value;
  if (values === "copy") return codec.copy(value);
  return isMadeFrozen(value) ? value : frozen(codec.copy(value));
}

/** About what an entry takes in memory. */
export function bytesOf(codec: Copier, key: string, value: unknown): number {
  return codec.sizeOf(value) + key.length * 2;
}

export class EntryView {
  readonly #core: MemoryCore;
  readonly #page: Page;
  readonly #scans = new KeyScans();

  constructor(core: MemoryCore, page: Page) {
    this.#core = core;
    this.#page = page;
  }

  /** The entry if it is fresh or, with `stale`, may still be served stale. */
  alive(key: string, stale: boolean): Held<TagSet> | undefined {
    const entry = this.#core.table.find(this.#page, key);
    if (entry === undefined) return undefined;
    return this.#core.clock.now() < (stale ? entry.staleUntil : entry.expires) ? entry : undefined;
  }

  inspect(key: string): Inspection | undefined {
    const entry = this.alive(key, false);
    return entry === undefined ? undefined : this.#inspection(key, entry);
  }

  examine(key: string): Examination | undefined {
    const entry = this.alive(key, true);
    if (entry === undefined) return undefined;
    const inspection = this.#inspection(key, entry);
    return { ...inspection, value: handed(this.#core, entry.value) };
  }

  preview(key: string, most: number): Preview | undefined {
    const entry = this.alive(key, true);
    if (entry === undefined) return undefined;
    const inspection = this.#inspection(key, entry);
    const { codec } = this.#core;
    const beginning = codec.copyBeginning(entry.value, most);
    const read = beginning.isWhole ? inspection.bytes : codec.sizeOf(beginning.value);
    return { ...inspection, beginning, read, of: inspection.bytes };
  }

  sight(key: string): Sighting {
    const entry = this.#core.table.sight(this.#page, key);
    if (entry === undefined) return { entry: undefined, tier: undefined, isLeased: false };
    const now = this.#core.clock.now();
    const { tagSet, expires, staleUntil } = entry;
    const fresh = now < expires;
    const isLive = tagSet?.isLive() !== false;
    return {
      entry: {
        fresh,
        ttlMs: Math.max(0, expires - now),
        expiredForMs: Math.max(0, now - expires),
        staleMs: Math.max(0, staleUntil - Math.max(now, expires)) || 0,
        tags: tagSet === undefined ? NO_TAGS : tagSet.tags,
        id: expires,
        ...(!isLive && { invalidatedBy: { tags: tagSet?.invalidated() ?? NO_TAGS, isCleared: false } }),
      },
      tier: fresh && isLive ? "memory" : undefined,
      isLeased: false,
    };
  }

  async *scan({
    signal,
    stale = false,
    from,
    at,
  }: EntryScanOptions = {}): AsyncIterable<readonly Inspection[]> {
    // Every key present throughout the scan; keys added meanwhile do not prolong it.
    const keysLeft = from === undefined ? this.#page.keys() : this.#scans.at(from);
    const more = at && ((): void => at(this.#scans.positionOf(keysLeft)));
    for await (const keys of inSteps(keysLeft, signal, more)) {
      const batch: Inspection[] = [];
      for (const key of keys) {
        const entry = this.alive(key, stale);
        if (entry !== undefined) batch.push(this.#inspection(key, entry));
      }
      yield batch;
    }
  }

  async usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    if (!exact && this.#page.size > COUNTED) {
      return { keys: this.#page.size, bytes: this.#estimatedBytes(), approximate: true };
    }
    return countedUsage(this.scan({ signal }));
  }

  #inspection(key: string, { value, tagSet, expires, staleUntil }: Held<TagSet>): Inspection {
    const now = this.#core.clock.now();
    const { codec } = this.#core;
    return {
      key,
      // Time may have passed since the entry was found fresh.
      ttlMs: Math.max(0, expires - now),
      fresh: now < expires,
      staleMs: Math.max(0, staleUntil - Math.max(now, expires)) || 0,
      tags: tagSet === undefined ? NO_TAGS : tagSet.tags,
      // A getter: measuring walks the whole value.
      get bytes() {
        return bytesOf(codec, key, value);
      },
    };
  }

  /** Extrapolated from the first entries, so that the cost does not grow with the store. */
  #estimatedBytes(): number {
    let measured = 0;
    let bytes = 0;
    for (const key of this.#page.keys()) {
      bytes += bytesOf(this.#core.codec, key, heldValue(this.#page.held(key)));
      if (++measured === SIZE_SAMPLE) break;
    }
    return measured === 0 ? 0 : Math.round((bytes / measured) * this.#page.size);
  }
}
