// Wraps the value of an entry that a hit must check (it has tags, or its expiry is near) or that is written more often than
// it is read: overwriting it then changes only the box.

/** A time is stored as two small integers, which V8 keeps inside the object: spans of twelve days, and the remainder. */
const SPAN_MS = 2 ** 30;
/** Multiplying by a power of two is exact and faster than dividing. */
const SPANS_PER_MS = 1 / SPAN_MS;
/** Never. */
const NO_SPAN = 2 ** 31 - 1;

/** From here on, in seventy million years, a time counts as never. */
export const FURTHEST = SPAN_MS * NO_SPAN;

export const NO_SLOT = -1;

export class Box {
  value: unknown;
  /** NO_SLOT until it is first looked up. */
  slot: number;
  /** When it expires, to the millisecond. */
  #span = 0;
  #millisecond = 0;

  constructor(value: unknown, slot: number, expires: number) {
    this.value = value;
    this.slot = slot;
    this.renew(value, expires);
  }

  get expires(): number {
    return this.#span === NO_SPAN ? Number.POSITIVE_INFINITY : this.#span * SPAN_MS + this.#millisecond;
  }

  /** Overwrites value and expiry. Returns whether it expires no earlier than before. */
  renew(value: unknown, expires: number): boolean {
    this.value = value;
    const span = this.#span;
    const millisecond = this.#millisecond;
    if (expires < FURTHEST) {
      // `| 0` rounds down and tells V8 that these are 32-bit integers.
      this.#span = (expires * SPANS_PER_MS) | 0;
      this.#millisecond = (expires - this.#span * SPAN_MS) | 0;
    } else {
      this.#span = NO_SPAN;
      this.#millisecond = 0;
    }
    return this.#span > span || (this.#span === span && this.#millisecond >= millisecond);
  }
}

/** Called on every hit: faster than `instanceof`, which walks the prototype chain. */
export const isBox = (held: unknown): held is Box =>
  held !== undefined && held !== null && held.constructor === Box;

/** The value behind what a page holds. */
export const heldValue = (held: unknown): unknown => (isBox(held) ? held.value : held);
