// A log of the latest hits by key: their slots are looked up only when the eviction policy needs them.

/** Small enough to stay in the L1 cache of the CPU. */
const LENGTH = 128;

export class UseLog {
  readonly most = LENGTH;
  length = 0;
  readonly #keys = new Array<string>(LENGTH).fill("");
  readonly #owners = new Uint32Array(LENGTH);

  get isFull(): boolean {
    return this.length === LENGTH;
  }

  /** The log must not be full. */
  add(key: string, owner: number): void {
    this.#keys[this.length] = key;
    this.#owners[this.length] = owner;
    this.length++;
  }

  /** Passes every hit to `use` and empties the log. */
  drain(use: (key: string, owner: number) => void): void {
    const { length } = this;
    this.length = 0;
    for (let at = 0; at < length; at++) {
      use(this.#keys[at]!, this.#owners[at]!);
      this.#keys[at] = "";
    }
  }
}
