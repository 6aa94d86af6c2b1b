// Collects a body while it passes, up to a bound.

export class BodyCollector {
  readonly #most: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isOver = false;

  constructor(most: number) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether there was more than is kept; then nothing is. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Keeps a copy: a handler may use its buffer again. */
  add(bytes: Uint8Array): void {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#most) {
      this.#isOver = true;
      this.#chunks = [];
    } else if (!this.#isOver) this.#chunks.push(Uint8Array.prototype.slice.call(bytes));
  }

  whole(): Uint8Array {
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }
}
