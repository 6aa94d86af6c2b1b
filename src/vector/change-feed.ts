// News among the processes of one semantic cache: which keys got an answer lately, kept in the store itself.
//
// Each writer has a record of its own, the ring, with the last keys it stored, counted from its first. `head` is a token
// that changes with every announcement: while it is the same there is no news, and where the store keeps what was read at
// hand until it changes, asking costs nothing. A reader that has missed more than a ring holds is told so, and lists the
// store instead. Nothing is relied on but single keys: last writer wins, and any record may vanish.
import type { Clock } from "../core/clock.ts";
import type { XCache } from "../xcache.ts";

export interface VectorChange {
  readonly keys: readonly string[];
  /** There may be more that was not told. */
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
/** A writer that says nothing for so long gives its place up; one who has not listened for half as long lists the store. */
const LIFETIME_SECONDS = 3_600;
const LONGEST_SILENCE_MS = (LIFETIME_SECONDS * 1000) / 2;
/** How long to wait for another writer that is about to take a place. */
const CLAIM_SECONDS = 1;
const MOST_KEYS = 256;
const MOST_UNITS = 8_192;
const MOST_WRITERS = 256;
/** Places looked at beyond the last one that was taken. */
const OUTLOOK = 4;

export class ChangeFeed {
  readonly #records: XCache;
  readonly #clock: Clock;
  readonly #writer: string;
  /** By writer: how many of its keys are known here. */
  #known = new Map<string, number>();
  /** Places below this one may be taken. */
  #width = 0;
  #seenHead: string | undefined;
  #listenedAt: number | undefined;

  #count = 0;
  #keys: string[] = [];
  #place: number | undefined;
  #wroteAt = 0;
  #writing: Promise<void> | undefined;
  #isOwed = false;

  constructor(records: XCache, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
    this.#writer = clock.token();
  }

  /** What others have announced since the last call; the first one tells all there is. */
  async read(): Promise<VectorChange> {
    const now = this.#clock.now();
    const head = await this.#records.get(HEAD);
    const silence = this.#listenedAt === undefined ? 0 : now - this.#listenedAt;
    if (head === undefined || (head === this.#seenHead && silence < LONGEST_SILENCE_MS)) {
      // Without a head there were no announcements, or they are lost with it.
      const isIncomplete = head === undefined && silence >= LONGEST_SILENCE_MS;
      this.#listenedAt = now;
      return isIncomplete ? { keys: [], isIncomplete } : NONE;
    }
    const rings = await this.#rings();
    // Only now: what was announced after the head was read changes it again.
    this.#seenHead = typeof head === "string" ? head : undefined;
    this.#listenedAt = now;
    const news = this.#newsOf(rings);
    return silence >= LONGEST_SILENCE_MS ? { ...news, isIncomplete: true } : news;
  }

  /** Resolves once others can know of the key. */
  announce(key: string): Promise<void> {
    this.#count++;
    this.#keys.push(key);
    let units = this.#keys.reduce((sum, each) => sum + each.length, 0);
    while (this.#keys.length > MOST_KEYS || (units > MOST_UNITS && this.#keys.length > 1)) {
      units -= this.#keys.shift()!.length;
    }
    this.#isOwed = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    // Others that are announced in the same turn go with this one.
    await undefined;
    while (this.#isOwed) {
      this.#isOwed = false;
      if (!(await this.#isMine())) this.#place = undefined;
      this.#place ??= await this.#claim();
      await this.#records.set(ringName(this.#place), this.#ring(), { ttl: LIFETIME_SECONDS });
      // After the ring: who sees the new head sees the key.
      await this.#records.set(HEAD, this.#clock.token(), { ttl: 24 * LIFETIME_SECONDS });
      this.#wroteAt = this.#clock.now();
    }
  }

  /** Whether the place can be written to: after a clear or an eviction another writer may have taken it. */
  async #isMine(): Promise<boolean> {
    if (this.#place === undefined || this.#clock.now() - this.#wroteAt > LONGEST_SILENCE_MS) return false;
    const ring = await this.#records.get(ringName(this.#place));
    return !isRing(ring) || ring.writer === this.#writer;
  }

  #ring(): Ring {
    return { writer: this.#writer, count: this.#count, keys: [...this.#keys] };
  }

  /** The first free place: whoever stores a ring there first has it. */
  async #claim(): Promise<number> {
    for (let place = 0; place < MOST_WRITERS; place++) {
      const ring = await this.#records.getOrSet(ringName(place), () => this.#ring(), {
        ttl: LIFETIME_SECONDS,
        hardTimeout: CLAIM_SECONDS,
      });
      if (ring.writer === this.#writer) return place;
    }
    // More writers than places: they overwrite each other, and readers that miss something list the store.
    return Math.floor(this.#clock.random() * MOST_WRITERS);
  }

  async #rings(): Promise<readonly Ring[]> {
    const rings: Ring[] = [];
    let taken = 0;
    for (let from = 0; from < MOST_WRITERS && from < Math.max(this.#width, taken) + OUTLOOK; ) {
      const to = Math.min(MOST_WRITERS, Math.max(this.#width, taken) + OUTLOOK);
      const names = Array.from({ length: to - from }, (_, at) => ringName(from + at));
      const found = await this.#records.getMany(names);
      for (const [at, name] of names.entries()) {
        const ring = found.get(name);
        if (isRing(ring)) {
          rings.push(ring);
          taken = from + at + 1;
        }
        const isMine = isRing(ring) && ring.writer === this.#writer;
        // Lost to somebody else, or gone with the store's room: the next announcement looks for another.
        if (from + at === this.#place && !isMine && this.#writing === undefined) this.#place = undefined;
      }
      from = to;
    }
    this.#width = taken;
    return rings;
  }

  #newsOf(rings: readonly Ring[]): VectorChange {
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

const ringName = (place: number): string => `ring:${place}`;

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
