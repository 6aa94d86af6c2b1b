// The latest hits, kept by key: a slot is looked up for them only when the eviction policy needs to know.

/** Few enough to stay in the fastest cache. */
const LENGTH = 128;

export class UseLog {
  length = 0;
  readonly #keys = new Array<string>(LENGTH).fill("");
  readonly #owners = new Uint32Array(LENGTH);

  get isFull(): boolean {
    return this.length === LENGTH;
  }

  /** There must be room. */
  add(key: string, owner: number): void {
    this.#keys[this.length] = key;
    this.#owners[this.length] = owner;
    this.length++;
  }

  /** Hands out everything and forgets it. */
  drain(use: (key: string, owner: number) => void): void {
    const { length } = this;
    this.length = 0;
    for (let at = 0; at < length; at++) {
      use(this.#keys[at]!, this.#owners[at]!);
      this.#keys[at] = "";
    }
  }
}
