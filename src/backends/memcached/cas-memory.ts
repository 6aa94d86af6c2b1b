// Which CAS the server gave a record when it was swapped in: whoever swaps it again need not read it first.
//
// It spares the holder of a lease a round trip when it renews and when it stores. A CAS says nothing of any other
// connection: a server that was started again counts from 1, and the same number may stand for another record there.
import type { Token } from "../../core/record.ts";

const MOST_KEPT = 10_000;
/** Keys may have 64 KiB: so many of those would be too much. */
const LONGEST_KEPT = 1_024;

interface Known {
  readonly version: Token;
  readonly cas: string;
}

export class CasMemory {
  readonly #known = new Map<string, Known>();

  keep(key: string, version: Token, cas: string): void {
    this.#known.delete(key);
    if (key.length > LONGEST_KEPT) return;
    if (this.#known.size >= MOST_KEPT) this.#known.delete(this.#known.keys().next().value as string);
    this.#known.set(key, { version, cas });
  }

  /** The CAS of exactly this record, as far as it is known. Whatever it was, it is forgotten: it is used once. */
  take(key: string, version: Token): string | undefined {
    const known = this.#known.get(key);
    this.#known.delete(key);
    return known?.version === version ? known.cas : undefined;
  }
}
