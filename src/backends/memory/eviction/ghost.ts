// Remembers keys that have left the cache: a fingerprint, the use count, and when and why each left.

/** Why an entry left: evicted from the window or from the main part, or by itself (expired, dead, deleted). */
export type Departure = "window" | "main" | "itself";

const WAYS = 8;
/** Departed keys remembered per slot of the store. */
const KEYS_PER_SLOT = 4;

// One word per key: fingerprint (15 bits), left by itself (1), departure time in ticks (12), count (4; 0 is an empty place).
const COUNT_MASK = 0xf;
const TICK_SHIFT = 4;
const TICK_MASK = 0xfff;
const ITSELF = 1 << 16;
const FINGERPRINT_SHIFT = 17;

/** A departure is recent for this share of the slots' number of departures from the window. */
const RECENT_SHARE = 1 / 8;
const RECENT_TICKS = 16;
/** An age that is not recent. */
const LONG_AGO = TICK_MASK >> 1;

const NOTHING = 0;
const NOWHERE = -1;
const RECENT = 1 << 4;
const PUSHED_OUT = 1 << 5;

/** The count in a result of `recall`; 0 if the key is not remembered. */
export const recalledCount = (recalled: number): number => recalled & COUNT_MASK;
/** The key was evicted. */
export const wasPushedOut = (recalled: number): boolean => (recalled & PUSHED_OUT) !== 0;
/** The key was evicted from the window recently: a larger window would have kept it. */
export const leftWindowRecently = (recalled: number): boolean => (recalled & RECENT) !== 0;

/** A table of small buckets. A full bucket forgets its least used key, the oldest among equals. */
export class Ghost {
  readonly #buckets: number;
  readonly #words: Uint32Array;
  /** The halvings applied to each bucket: halving all counts is deferred until a bucket is accessed. */
  readonly #halvedUntil: Uint8Array;
  readonly #departuresPerTick: number;
  readonly #recentTicks: number;
  #halvings = 0;
  #tick = 0;
  #departures = 0;

  constructor(slots: number) {
    this.#buckets = Math.max(1, Math.ceil((slots * KEYS_PER_SLOT) / WAYS));
    this.#words = new Uint32Array(this.#buckets * WAYS);
    this.#halvedUntil = new Uint8Array(this.#buckets);
    const recentDepartures = Math.ceil(slots * RECENT_SHARE);
    this.#recentTicks = Math.min(RECENT_TICKS, recentDepartures);
    this.#departuresPerTick = Math.ceil(recentDepartures / RECENT_TICKS);
  }

  /** Looks a key up and forgets it; see the functions above for the result. */
  recall(hash: number): number {
    const at = this.#find(hash);
    if (at === NOWHERE) return NOTHING;
    const word = this.#words[at]!;
    this.#words[at] = 0;
    let recalled = word & COUNT_MASK;
    if (this.#age(word) < this.#recentTicks) recalled |= RECENT;
    if ((word & ITSELF) === 0) recalled |= PUSHED_OUT;
    return recalled;
  }

  /** Whether the key is remembered; if not, remembers it as evicted from the window. */
  knowsFromNow(hash: number, count: number): boolean {
    if (this.#find(hash) !== NOWHERE) return true;
    this.remember(hash, count, "window");
    return false;
  }

  remember(hash: number, count: number, departure: Departure): void {
    if (count === 0) return;
    const start = this.#open(hash);
    let place = start;
    let lowest = Number.POSITIVE_INFINITY;
    for (let at = start; at < start + WAYS; at++) {
      const word = this.#words[at]!;
      const worth = word === 0 ? -TICK_MASK : (word & COUNT_MASK) * (TICK_MASK + 1) - this.#age(word);
      if (worth >= lowest) continue;
      lowest = worth;
      place = at;
    }
    let tick = this.#tick;
    if (departure === "window") this.#countDeparture();
    else tick = (tick - LONG_AGO) & TICK_MASK;
    const reason = departure === "itself" ? ITSELF : 0;
    this.#words[place] = ((hash & 0x7fff) << FINGERPRINT_SHIFT) | reason | (tick << TICK_SHIFT) | count;
  }

  /** Halves every count. */
  halve(): void {
    this.#halvings = (this.#halvings + 1) & 0xff;
  }

  #find(hash: number): number {
    const start = this.#open(hash);
    const fingerprint = hash & 0x7fff;
    for (let at = start; at < start + WAYS; at++) {
      const word = this.#words[at]!;
      if (word !== 0 && word >>> FINGERPRINT_SHIFT === fingerprint) return at;
    }
    return NOWHERE;
  }

  #countDeparture(): void {
    if (++this.#departures < this.#departuresPerTick) return;
    this.#departures = 0;
    this.#tick = (this.#tick + 1) & TICK_MASK;
  }

  #age(word: number): number {
    return (this.#tick - ((word >>> TICK_SHIFT) & TICK_MASK)) & TICK_MASK;
  }

  /** The start of the key's bucket, after applying deferred halvings. The high bits of the hash select the bucket. */
  #open(hash: number): number {
    const bucket = Math.floor((hash / 0x1_0000_0000) * this.#buckets);
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
