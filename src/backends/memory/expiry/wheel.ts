// A hashed timing wheel over the slots (Varghese and Lauck, 1987): finds the entries due in each second without a timer per
// entry. The slots of one second form a list through their rows. A slot due beyond the range of the wheel is linked at the
// end of the range, and linked again when it comes up.
import { firstWord, NEXT, PREVIOUS, type Rows, TICK } from "../layout/rows.ts";

export const TICK_MS = 1_000;
export const tickOf = (time: number): number => Math.floor(time / TICK_MS);

/** One revolution takes a little more than an hour. */
const BUCKETS = 4_096;
/** The list of slots taken out of their bucket and not yet returned by `take`. */
const PENDING = BUCKETS;
/** Marks a PREVIOUS that is a list number: the slot is the first of the list. */
const LIST = 0x8000_0000;
/** In TICK: not linked. Slots in NEXT and in the heads are stored plus one. */
const NOWHERE = 0;
const END = 0;

export class Wheel {
  /** The number of linked slots. */
  size = 0;
  /** First tick whose slots are all still in the wheel. */
  next = 0;
  /** First tick of which `take` may still return a slot. */
  firstOpen = 0;
  /** The latest tick passed to `take`; overdue slots before it may still be in the wheel. */
  #end = 0;
  readonly #rows: Rows<unknown>;
  readonly #heads = new Uint32Array(BUCKETS + 1);

  constructor(rows: Rows<unknown>) {
    this.#rows = rows;
  }

  /** Sets an empty wheel to a tick. */
  start(tick: number): void {
    this.next = tick;
    this.firstOpen = tick;
    this.#end = tick;
  }

  /** Whether the slot comes up in the second of this time or before. */
  comesBy(slot: number, time: number): boolean {
    const linked = this.#rows.words[firstWord(slot) + TICK]!;
    return linked !== NOWHERE && linked * TICK_MS <= time;
  }

  /** Links a slot to come up in the second of this time, or earlier if that is out of range. */
  link(slot: number, time: number): void {
    const linked = Math.min(Math.max(tickOf(time), this.next), this.next + BUCKETS - 1);
    const { words } = this.#rows;
    const row = firstWord(slot);
    const list = linked & (BUCKETS - 1);
    const first = this.#heads[list]!;
    words[row + TICK] = linked;
    words[row + PREVIOUS] = LIST | list;
    words[row + NEXT] = first;
    if (first !== END) words[firstWord(first - 1) + PREVIOUS] = slot;
    this.#heads[list] = slot + 1;
    this.size++;
  }

  /** Removes the slot from its list; does nothing if it is not linked. */
  unlink(slot: number): void {
    const { words } = this.#rows;
    const row = firstWord(slot);
    if (words[row + TICK] === NOWHERE) return;
    const previous = words[row + PREVIOUS]!;
    const next = words[row + NEXT]!;
    if (previous >= LIST) this.#heads[previous - LIST] = next;
    else words[firstWord(previous) + NEXT] = next;
    if (next !== END) words[firstWord(next - 1) + PREVIOUS] = previous;
    words[row + TICK] = NOWHERE;
    this.size--;
  }

  /** Removes and returns a slot due before `until`, or before a later tick passed earlier; -1 if there is none left. */
  take(until: number): number {
    this.#end = Math.max(this.#end, until);
    const end = this.#end;
    // However late it is, one revolution visits every bucket.
    if (this.next < end - BUCKETS && this.#heads[PENDING] === END) this.next = end - BUCKETS;
    for (;;) {
      const first = this.#heads[PENDING]!;
      if (first !== END) {
        this.unlink(first - 1);
        return first - 1;
      }
      if (this.next >= end) {
        this.firstOpen = this.next;
        return -1;
      }
      this.#open(this.next++ & (BUCKETS - 1));
    }
  }

  #open(list: number): void {
    const first = this.#heads[list]!;
    if (first === END) return;
    this.#rows.words[firstWord(first - 1) + PREVIOUS] = LIST | PENDING;
    this.#heads[PENDING] = first;
    this.#heads[list] = END;
  }
}
