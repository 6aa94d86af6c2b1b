// Stands in a page for the value of an entry that a hit must look at closer (it has tags, or its expiry is near), or that
// is written more often than it is read: then writing it again changes the box and looks up nothing else.

/** Seconds are counted from here, so that they are small integers, which V8 keeps in the object itself. */
const FIRST_SECOND = 1_700_000_000;
/** Stands for never, and for anything after 2091. */
const NO_SECOND = 2 ** 31 - 1;

export const NO_SLOT = -1;

export class Box {
  value: unknown;
  /** NO_SLOT until somebody had to look it up. */
  slot: number;
  /** When it expires, to the millisecond. */
  #second = 0;
  #millisecond = 0;

  constructor(value: unknown, slot: number, expires: number) {
    this.value = value;
    this.slot = slot;
    this.renew(value, expires);
  }

  get expires(): number {
    if (this.#second === NO_SECOND) return Number.POSITIVE_INFINITY;
    return (this.#second + FIRST_SECOND) * 1_000 + this.#millisecond;
  }

  /** Writes it anew. Returns whether it expires no earlier than before, to the second. */
  renew(value: unknown, expires: number): boolean {
    this.value = value;
    const before = this.#second;
    const beforeMs = this.#millisecond;
    const second = Math.floor(expires / 1_000);
    if (second - FIRST_SECOND < NO_SECOND) {
      this.#second = second - FIRST_SECOND;
      this.#millisecond = Math.floor(expires - second * 1_000);
    } else {
      this.#second = NO_SECOND;
      this.#millisecond = 0;
    }
    return this.#second > before || (this.#second === before && this.#millisecond >= beforeMs);
  }
}

/** The value behind what a page holds. */
export const heldValue = (held: unknown): unknown => (held instanceof Box ? held.value : held);
