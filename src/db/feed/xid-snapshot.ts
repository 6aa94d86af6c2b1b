// A snapshot of PostgreSQL as pg_current_snapshot() prints it: which transactions its statements see.

const EPOCH = 1n << 32n;

export class XidSnapshot {
  /** All transactions below it are over. */
  readonly #xmin: bigint;
  /** No transaction from here on is over. */
  readonly #xmax: bigint;
  readonly #inProgress: ReadonlySet<bigint>;

  /** `xmin:xmax:xip,xip`. */
  constructor(text: string) {
    const [xmin = "", xmax = "", list = ""] = text.split(":");
    this.#xmin = BigInt(xmin);
    this.#xmax = BigInt(xmax);
    this.#inProgress = new Set(list === "" ? [] : list.split(",").map(BigInt));
  }

  /** Whether it sees what the transaction wrote, if that has committed. `xid`: the 32 bits that the stream has of it. */
  sees(xid: number): boolean {
    return this.#seesFull(this.#full(xid));
  }

  /** Whether it sees everything that `other` sees. */
  covers(other: XidSnapshot): boolean {
    for (const xid of this.#inProgress) if (other.#seesFull(xid)) return false;
    for (let xid = this.#xmax; xid < other.#xmax; xid++) if (other.#seesFull(xid)) return false;
    return true;
  }

  #seesFull(xid: bigint): boolean {
    if (xid < this.#xmin) return true;
    return xid < this.#xmax && !this.#inProgress.has(xid);
  }

  /** Transaction ids wrap around every 2^32; the one meant is the one nearest to the present. */
  #full(xid: number): bigint {
    const near = this.#xmax - (this.#xmax % EPOCH) + BigInt(xid);
    if (near > this.#xmax + EPOCH / 2n) return near - EPOCH;
    return near + EPOCH / 2n < this.#xmax ? near + EPOCH : near;
  }
}
