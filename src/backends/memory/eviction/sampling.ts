// How many hits go by for each one that is recorded: the eviction policy learns as much from about eight per insertion as from
// all of them, and a cache that mostly hits has far more.

/** Recorded uses per insertion that are aimed at; with two, hit ratios fall by up to 0.4 points. */
const USES_PER_INSERTION = 8;
/** The mean of the strides is at most this; a single one is less than twice as long. Reached with one insertion per 512 hits. */
const LONGEST_STRIDE = 64;
/** The stride is set again after this many recorded uses, or as many insertions as should have them. */
const PERIOD = 256;

export class Sampling {
  readonly #longest: number;
  /** The mean number of hits for each recorded one. */
  #stride = 1;
  /** Hits to go by before the next recorded one. */
  #left = 0;
  #uses = 0;
  #insertions = 0;
  /** A xorshift generator: strides are random, so that no pattern of requests escapes. */
  #random = 0x9e37_79b9 | 0;

  /** `isAllowed`: whether hits may go unrecorded at all. */
  constructor(isAllowed: boolean) {
    this.#longest = isAllowed ? LONGEST_STRIDE : 1;
  }

  /** Whether any hits are skipped. */
  get isSparse(): boolean {
    return this.#stride > 1;
  }

  /** Whether to record this hit. */
  takes(): boolean {
    if (this.#left > 0) {
      this.#left--;
      return false;
    }
    this.#left = this.#skipped();
    return true;
  }

  /** Lets up to `most` hits go by that would not be recorded; returns how many. */
  pass(most: number): number {
    const passed = Math.min(this.#left, most);
    this.#left -= passed;
    return passed;
  }

  /** How many hits to skip after a recorded one. */
  #skipped(): number {
    let random = this.#random;
    random ^= random << 13;
    random ^= random >>> 17;
    random ^= random << 5;
    this.#random = random;
    return (((random >>> 0) * (2 * this.#stride - 1)) / 0x1_0000_0000) | 0;
  }

  inserted(): void {
    if (++this.#insertions >= PERIOD / USES_PER_INSERTION) this.#adjust();
  }

  /** Counts recorded uses; returns how many hits each of them stands for. */
  recorded(uses: number): number {
    const stride = this.#stride;
    this.#uses += uses;
    if (this.#uses >= PERIOD) this.#adjust();
    return stride;
  }

  #adjust(): void {
    const wanted = (this.#uses * this.#stride) / (Math.max(1, this.#insertions) * USES_PER_INSERTION);
    this.#stride = Math.max(1, Math.min(this.#longest, wanted));
    this.#left = Math.min(this.#left, Math.floor(2 * this.#stride) - 2);
    this.#uses = 0;
    this.#insertions = 0;
  }
}
