// Remembers keys that have left the cache: a fingerprint, the use count, when each was last used and why it left.

/**
 * Why an entry left: evicted from the window or from the main part, in favour of a returning key on trial (see Eviction), or by
 * itself (expired, dead, deleted).
 */
export type Departure = "window" | "main" | "trial" | "itself";

const WAYS = 8;
/** Departed keys remembered per slot of the store. */
const KEYS_PER_SLOT = 4;

// One word per key: fingerprint (16 bits), departure (2), last use in ticks (10), count (4; 0 is an empty place).
const COUNT_MASK = 0xf;
const TICK_SHIFT = 4;
const TICK_MASK = 0x3ff;
const DEPARTURE_SHIFT = 14;
const DEPARTURE_MASK = 3;
const FINGERPRINT_SHIFT = 16;
const FINGERPRINT_MASK = 0xffff;

const FROM_WINDOW = 0;
const FROM_MAIN = 1;
const FOR_TRIAL = 2;
const BY_ITSELF = 3;

/** Compared one by one: looking the name up in an object takes several times as long. */
function codeOf(departure: Departure): number {
  if (departure === "window") return FROM_WINDOW;
  if (departure === "main") return FROM_MAIN;
  return departure === "trial" ? FOR_TRIAL : BY_ITSELF;
}

/** Ticks per as many departures as there are slots. */
const TICKS_PER_TURN = 32;
/** A key left recently if a window larger by this share of the slots would still have it. */
const RECENT_SHARE = 1 / 8;

/** More than any key is worth in its bucket. */
const MOST_WORTH = (COUNT_MASK + 1) * (TICK_MASK + 1);

const NOTHING = 0;
const NOWHERE = -1;
const RECENT = 1 << 4;
const PUSHED_OUT = 1 << 5;
const ON_TRIAL = 1 << 6;
const WITHIN_HALF = 1 << 7;
const IDLE_SHIFT = 8;

/** The count in a result of `recall`; 0 if the key is not remembered. */
export const recalledCount = (recalled: number): number => recalled & COUNT_MASK;
/** The key was evicted. */
export const wasPushedOut = (recalled: number): boolean => (recalled & PUSHED_OUT) !== 0;
/** The key was evicted from the window recently: a larger window would have kept it. */
export const leftWindowRecently = (recalled: number): boolean => (recalled & RECENT) !== 0;
/** The key was evicted from the window, and one of half the slots would have kept it. */
export const wouldFitHalf = (recalled: number): boolean => (recalled & WITHIN_HALF) !== 0;
/** The key made room for one on trial. */
export const madeRoomForTrial = (recalled: number): boolean => (recalled & ON_TRIAL) !== 0;
/** Ticks since its last use. */
export const recalledIdle = (recalled: number): number => recalled >>> IDLE_SHIFT;

/** A table of small buckets. A full bucket forgets its least used key, the longest unused among equals. */
export class Ghost {
  /** The time: a counter of departures, 32 ticks for as many as there are slots. */
  tick = 0;
  readonly #buckets: number;
  readonly #words: Uint32Array;
  /** The halvings applied to each bucket: halving all counts is deferred until a bucket is accessed. */
  readonly #halvedUntil: Uint8Array;
  readonly #departuresPerTick: number;
  readonly #recentTicks: number;
  #halvings = 0;
  #departures = 0;

  constructor(slots: number) {
    this.#buckets = Math.max(1, Math.ceil((slots * KEYS_PER_SLOT) / WAYS));
    this.#words = new Uint32Array(this.#buckets * WAYS);
    this.#halvedUntil = new Uint8Array(this.#buckets);
    this.#departuresPerTick = Math.max(1, Math.ceil(slots / TICKS_PER_TURN));
    this.#recentTicks = this.ticksOf(Math.ceil(slots * RECENT_SHARE));
  }

  /** How many ticks this many departures take. */
  ticksOf(departures: number): number {
    return Math.ceil(departures / this.#departuresPerTick);
  }

  /** Looks a key up; see the functions above for the result. `window`: the size of the window. */
  find(hash: number, window = 0): number {
    const at = this.#find(hash);
    return at === NOWHERE ? NOTHING : this.#past(this.#words[at]!, window);
  }

  /** Looks a key up and forgets it. */
  recall(hash: number, window = 0): number {
    const at = this.#find(hash);
    if (at === NOWHERE) return NOTHING;
    const word = this.#words[at]!;
    this.#words[at] = 0;
    return this.#past(word, window);
  }

  /** Whether the key is remembered; if not, remembers it as evicted from the window. */
  knowsFromNow(hash: number, count: number): boolean {
    if (this.#find(hash) !== NOWHERE) return true;
    this.remember(hash, count, "window");
    return false;
  }

  /** `idle`: ticks since the last use. */
  remember(hash: number, count: number, departure: Departure, idle = 0): void {
    this.#countDeparture();
    if (count === 0) return;
    const start = this.#open(hash);
    let place = start;
    let lowest = MOST_WORTH;
    for (let at = start; at < start + WAYS; at++) {
      const word = this.#words[at]!;
      const worth = word === 0 ? -TICK_MASK : (word & COUNT_MASK) * (TICK_MASK + 1) - this.#idle(word);
      if (worth >= lowest) continue;
      lowest = worth;
      place = at;
    }
    const lastUse = (this.tick - Math.min(idle, TICK_MASK)) & TICK_MASK;
    this.#words[place] =
      ((hash & FINGERPRINT_MASK) << FINGERPRINT_SHIFT) |
      (codeOf(departure) << DEPARTURE_SHIFT) |
      (lastUse << TICK_SHIFT) |
      count;
  }

  /** Something of the bucket of a key, to have it read in time. */
  sample(hash: number): number {
    const bucket = this.#bucketOf(hash);
    return this.#halvedUntil[bucket]! ^ this.#words[bucket * WAYS]!;
  }

  /** Halves every count. */
  halve(): void {
    this.#halvings = (this.#halvings + 1) & 0xff;
  }

  #past(word: number, window: number): number {
    const idle = this.#idle(word);
    const departure = (word >>> DEPARTURE_SHIFT) & DEPARTURE_MASK;
    let past = (word & COUNT_MASK) | (idle << IDLE_SHIFT);
    if (departure !== BY_ITSELF) past |= PUSHED_OUT;
    if (departure === FOR_TRIAL) past |= ON_TRIAL;
    if (departure !== FROM_WINDOW) return past;
    if (idle < TICKS_PER_TURN / 2) past |= WITHIN_HALF;
    if (idle < this.#recentTicks + this.ticksOf(window)) past |= RECENT;
    return past;
  }

  #find(hash: number): number {
    const start = this.#open(hash);
    const fingerprint = hash & FINGERPRINT_MASK;
    for (let at = start; at < start + WAYS; at++) {
      const word = this.#words[at]!;
      if (word !== 0 && word >>> FINGERPRINT_SHIFT === fingerprint) return at;
    }
    return NOWHERE;
  }

  #countDeparture(): void {
    if (++this.#departures < this.#departuresPerTick) return;
    this.#departures = 0;
    this.tick = (this.tick + 1) & 0xffff;
  }

  #idle(word: number): number {
    return (this.tick - (word >>> TICK_SHIFT)) & TICK_MASK;
  }

  /** The high bits of the hash select the bucket. */
  #bucketOf(hash: number): number {
    return Math.floor((hash / 0x1_0000_0000) * this.#buckets);
  }

  /** The start of the key's bucket, after applying deferred halvings. */
  #open(hash: number): number {
    const bucket = this.#bucketOf(hash);
    const start = bucket * WAYS;
    const missed = (this.#halvings - this.#halvedUntil[bucket]!) & 0xff;
    if (missed !== 0) {
      this.#halvedUntil[bucket] = this.#halvings;
      for (let at = start; at < start + WAYS; at++) {
        const word = this.#words[at]!;
        const count = (word & COUNT_MASK) >> Math.min(missed, 4);
        this.#words[at] = count === 0 ? 0 : (word & ~COUNT_MASK) | count;
      }
    }
    return start;
  }
}
