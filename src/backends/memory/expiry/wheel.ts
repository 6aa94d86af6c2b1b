// A hashed timing wheel over the slots (Varghese and Lauck, 1987): who is due at which second, with no timer per entry.
// Slots of one second are a list through their rows. A slot that is due later than the wheel reaches is linked as far
// as it does reach, and linked again when it comes up.
import { firstWord, NEXT, PREVIOUS, type Rows, TICK } from "../layout/rows.ts";

export const TICK_MS = 1_000;
export const tickOf = (time: number): number => Math.floor(time / TICK_MS);

/** One turn of the wheel is a little more than an hour. */
const BUCKETS = 4_096;
/** The list of slots taken out of their bucket and not yet handed out. */
const PENDING = BUCKETS;
/** Marks a PREVIOUS that is the number of a list: the slot is its first. */
const LIST = 0x8000_0000;
/** In TICK: linked nowhere. Slots in NEXT and in the heads are counted from one. */
const NOWHERE = 0;
const END = 0;

export class Wheel {
  /** How many slots are linked. */
  size = 0;
  /** First tick whose slots are all still in the wheel. */
  next = 0;
  /** First tick of which a slot may still have to be handed out. */
  firstOpen = 0;
  /** The tick that it was asked to turn to: before that it has not seen all that was overdue. */
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

  /** Lets an unlinked slot come up in the second of this time, or before it when that is far away. */
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

  /** Takes the slot out, wherever it is; nothing happens if it is nowhere. */
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

  /** Takes out a slot of a tick before `until`, or the latest one asked for, or -1 when there is none left. */
  take(until: number): number {
    this.#end = Math.max(this.#end, until);
    const end = this.#end;
    // However late it is, one turn brings up everything.
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
