// The CAS that the server gave a record when it was swapped in, so that the next swap need not read the record first.
//
// This saves the holder of a lease a round trip when it renews and when it stores. A CAS is only valid on its connection: a
// restarted server counts from 1, and the same number may stand for another record there.
import type { Token } from "../../core/record.ts";

const MOST_KEPT = 10_000;
/** Keys may have 64 KiB: ten thousand of those would be too much. */
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

  /** The CAS of exactly this record, if known. It is forgotten either way, since it is good for one use. */
  take(key: string, version: Token): string | undefined {
    const known = this.#known.get(key);
    this.#known.delete(key);
    return known?.version === version ? known.cas : undefined;
  }
}
