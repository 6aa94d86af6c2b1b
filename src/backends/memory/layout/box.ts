// Stands in a page for the value of an entry that a hit must look at closer (it has tags, or its expiry is near), or that
// is written more often than it is read: then writing it again changes the box and looks up nothing else.

/** A time is kept as two small integers, which V8 keeps in the object itself: whole spans of twelve days, and the rest. */
const SPAN_MS = 2 ** 30;
/** To multiply by a power of two is exact, and faster than to divide. */
const SPANS_PER_MS = 1 / SPAN_MS;
/** Stands for never. */
const NO_SPAN = 2 ** 31 - 1;

/** From here on, in seventy million years, a time is taken for never. */
export const FURTHEST = SPAN_MS * NO_SPAN;

export const NO_SLOT = -1;

export class Box {
  value: unknown;
  /** NO_SLOT until somebody had to look it up. */
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

  /** Writes it anew. Returns whether it expires no earlier than before. */
  renew(value: unknown, expires: number): boolean {
    this.value = value;
    const span = this.#span;
    const millisecond = this.#millisecond;
    if (expires < FURTHEST) {
      // `| 0` rounds down and says that these are whole numbers of 32 bits.
      this.#span = (expires * SPANS_PER_MS) | 0;
      this.#millisecond = (expires - this.#span * SPAN_MS) | 0;
    } else {
      this.#span = NO_SPAN;
      this.#millisecond = 0;
    }
    return this.#span > span || (this.#span === span && this.#millisecond >= millisecond);
  }
}

/** Asked at every hit: faster than `instanceof`, which walks along the prototypes. */
export const isBox = (held: unknown): held is Box =>
  held !== undefined && held !== null && held.constructor === Box;

/** The value behind what a page holds. */
export const heldValue = (held: unknown): unknown => (isBox(held) ? held.value : held);
