// Buffers a response body as it streams through, up to a maximum size.

export class BodyCollector {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isTooLarge = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** True once the body exceeded the maximum; the buffered bytes are then dropped. */
  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** Copies the chunk: the handler may reuse its buffer. */
  add(bytes: Uint8Array): void {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#maxBytes) {
      this.#isTooLarge = true;
      this.#chunks = [];
    } else if (!this.#isTooLarge) this.#chunks.push(Uint8Array.prototype.slice.call(bytes));
  }

  whole(): Uint8Array {
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }
}
