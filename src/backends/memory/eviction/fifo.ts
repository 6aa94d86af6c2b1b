// A queue of slot numbers in a ring buffer that doubles when full.

export class Fifo {
  #ring = new Uint32Array(64);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The slot at this position, counted from the oldest. */
  at(position: number): number {
    return this.#ring[(this.#head + position) & (this.#ring.length - 1)]!;
  }

  push(slot: number): void {
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = slot;
    this.#length++;
  }

  /** Removes the oldest; the queue must not be empty. */
  shift(): number {
    const slot = this.#ring[this.#head]!;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#length--;
    return slot;
  }

  /** Drops the slots for which `keep` returns false; called from the newest to the oldest. */
  retain(keep: (slot: number) => boolean): void {
    const mask = this.#ring.length - 1;
    const end = this.#head + this.#length;
    let kept = 0;
    for (let at = end - 1; at >= this.#head; at--) {
      const slot = this.#ring[at & mask]!;
      if (keep(slot)) this.#ring[(end - ++kept) & mask] = slot;
    }
    this.#head = (end - kept) & mask;
    this.#length = kept;
  }

  #grow(): void {
    const grown = new Uint32Array(this.#ring.length * 2);
    grown.set(this.#ring.subarray(this.#head));
    grown.set(this.#ring.subarray(0, this.#head), this.#ring.length - this.#head);
    this.#ring = grown;
    this.#head = 0;
  }
}
