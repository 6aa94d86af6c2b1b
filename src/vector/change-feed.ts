// The change feed among the processes of one semantic cache: which keys got an answer lately, kept in the store itself.
//
// Each writer has its own record, a ring of the last keys it stored, numbered from its first. `head` is a token that changes
// with every announcement: while it is unchanged there is nothing new, and with a near tier the check costs nothing. A
// reader that missed more than a ring holds gets `isIncomplete` and lists the store instead. The feed relies on single keys
// only: the last writer wins, and any record may vanish.
import type { Clock } from "../core/clock.ts";
import type { XCache } from "../xcache.ts";

export interface VectorChange {
  readonly keys: readonly string[];
  /** Some changes may have been missed. */
  readonly isIncomplete: boolean;
}

interface Ring {
  readonly writer: string;
  /** How many keys its writer has announced in all. */
  readonly count: number;
  /** The last of them. */
  readonly keys: readonly string[];
}

const NONE: VectorChange = { keys: [], isIncomplete: false };

const HEAD = "head";
/** A writer that is silent for this long loses its slot; a reader that has not read for half of it lists the store. */
const LIFETIME_SECONDS = 3_600;
const LONGEST_PAUSE_MS = (LIFETIME_SECONDS * 1000) / 2;
/** How long to wait for another writer that is claiming the same slot. */
const CLAIM_SECONDS = 1;
const MOST_KEYS = 256;
const MOST_UNITS = 8_192;
const MOST_WRITERS = 256;
/** Slots to read beyond the last one in use. */
const LOOKAHEAD = 4;

export class ChangeFeed {
  readonly #records: XCache;
  readonly #clock: Clock;
  readonly #writer: string;
  /** By writer: how many of its keys are known here. */
  #known = new Map<string, number>();
  /** Slots below this one may be in use. */
  #width = 0;
  #seenHead: string | undefined;
  #readAt: number | undefined;

  #count = 0;
  #keys: string[] = [];
  #slot: number | undefined;
  #wroteAt = 0;
  #writing: Promise<void> | undefined;
  #isDirty = false;

  constructor(records: XCache, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
    this.#writer = clock.token();
  }

  /** What others announced since the last call; the first call returns everything there is. */
  async read(): Promise<VectorChange> {
    const now = this.#clock.now();
    const head = await this.#records.get(HEAD);
    const pause = this.#readAt === undefined ? 0 : now - this.#readAt;
    if (head === undefined || (head === this.#seenHead && pause < LONGEST_PAUSE_MS)) {
      // Without a head there were no announcements, or they were lost with it.
      const isIncomplete = head === undefined && pause >= LONGEST_PAUSE_MS;
      this.#readAt = now;
      return isIncomplete ? { keys: [], isIncomplete } : NONE;
    }
    const rings = await this.#rings();
    // Only now: an announcement after the head was read changes it again.
    this.#seenHead = typeof head === "string" ? head : undefined;
    this.#readAt = now;
    const change = this.#changesIn(rings);
    return pause >= LONGEST_PAUSE_MS ? { ...change, isIncomplete: true } : change;
  }

  /** Resolves once others can see the key. */
  announce(key: string): Promise<void> {
    this.#count++;
    this.#keys.push(key);
    let units = this.#keys.reduce((sum, each) => sum + each.length, 0);
    while (this.#keys.length > MOST_KEYS || (units > MOST_UNITS && this.#keys.length > 1)) {
      units -= this.#keys.shift()!.length;
    }
    this.#isDirty = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    // Keys announced in the same turn are written together.
    await undefined;
    while (this.#isDirty) {
      this.#isDirty = false;
      if (!(await this.#ownsSlot())) this.#slot = undefined;
      this.#slot ??= await this.#claim();
      await this.#records.set(ringName(this.#slot), this.#ring(), { ttl: LIFETIME_SECONDS });
      // After the ring, so that a reader of the new head also finds the key.
      await this.#records.set(HEAD, this.#clock.token(), { ttl: 24 * LIFETIME_SECONDS });
      this.#wroteAt = this.#clock.now();
    }
  }

  /** Whether the slot is still ours: after a clear or an eviction another writer may have claimed it. */
  async #ownsSlot(): Promise<boolean> {
    if (this.#slot === undefined || this.#clock.now() - this.#wroteAt > LONGEST_PAUSE_MS) return false;
    const ring = await this.#records.get(ringName(this.#slot));
    return !isRing(ring) || ring.writer === this.#writer;
  }

  #ring(): Ring {
    return { writer: this.#writer, count: this.#count, keys: [...this.#keys] };
  }

  /** The first free slot: the first writer to store a ring there owns it. */
  async #claim(): Promise<number> {
    for (let slot = 0; slot < MOST_WRITERS; slot++) {
      const ring = await this.#records.getOrSet(ringName(slot), () => this.#ring(), {
        ttl: LIFETIME_SECONDS,
        hardTimeout: CLAIM_SECONDS,
      });
      if (ring.writer === this.#writer) return slot;
    }
    // More writers than slots: they overwrite each other, and readers that miss something list the store.
    return Math.floor(this.#clock.random() * MOST_WRITERS);
  }

  async #rings(): Promise<readonly Ring[]> {
    const rings: Ring[] = [];
    let used = 0;
    for (let from = 0; from < MOST_WRITERS && from < Math.max(this.#width, used) + LOOKAHEAD; ) {
      const to = Math.min(MOST_WRITERS, Math.max(this.#width, used) + LOOKAHEAD);
      const names = Array.from({ length: to - from }, (_, at) => ringName(from + at));
      const found = await this.#records.getMany(names);
      for (const [at, name] of names.entries()) {
        const ring = found.get(name);
        if (isRing(ring)) {
          rings.push(ring);
          used = from + at + 1;
        }
        const isMine = isRing(ring) && ring.writer === this.#writer;
        // Claimed by another writer or evicted: the next announcement claims another slot.
        if (from + at === this.#slot && !isMine && this.#writing === undefined) this.#slot = undefined;
      }
      from = to;
    }
    this.#width = used;
    return rings;
  }

  #changesIn(rings: readonly Ring[]): VectorChange {
    const keys: string[] = [];
    const known = new Map<string, number>();
    let isIncomplete = false;
    for (const { writer, count, keys: announced } of rings) {
      if (writer === this.#writer) continue;
      const before = this.#known.get(writer) ?? 0;
      const first = count - announced.length;
      if (first > before) isIncomplete = true;
      keys.push(...announced.slice(Math.max(0, before - first)));
      known.set(writer, Math.max(before, count));
    }
    this.#known = known;
    return { keys, isIncomplete };
  }
}

const ringName = (slot: number): string => `ring:${slot}`;

function isRing(found: unknown): found is Ring {
  if (typeof found !== "object" || found === null) return false;
  const { writer, count, keys } = found as Partial<Ring>;
  return (
    typeof writer === "string" &&
    Number.isSafeInteger(count) &&
    Array.isArray(keys) &&
    keys.every((key) => typeof key === "string" && key !== "")
  );
}
