// When entries that this process has stored expire, by its own clock: exact where the store's time is only known roughly.
import type { Clock } from "../clock.ts";
import type { Token } from "../record.ts";

/** Longer lifetimes are not shortened noticeably by the error of any clock. */
const LONGEST_MS = 20_000;
/** An error of less than this share of a lifetime does no harm. */
const TOLERATED = 1 / 20;
/** A larger error is that of memcached, whose seconds are not even. */
const EVEN_MS = 5;
const MOST = 10_000;

interface Expiry {
  readonly expires: number;
  /** When it is forgotten. */
  readonly until: number;
}

export class OwnExpiries {
  readonly #clock: Clock;
  /** By the version of the entry, in the order they were stored. */
  readonly #expiries = new Map<Token, Expiry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a lifetime is so short that the error of the store's time matters. */
  static matters(ttlMs: number, clockErrorMs: () => number): boolean {
    return ttlMs <= LONGEST_MS && clockErrorMs() > Math.min(ttlMs * TOLERATED, EVEN_MS);
  }

  add(version: Token, ttlMs: number, staleMs: number): void {
    const now = this.#clock.now();
    for (const [oldest, { until }] of this.#expiries) {
      if (until > now && this.#expiries.size < MOST) break;
      this.#expiries.delete(oldest);
    }
    const expires = now + ttlMs;
    this.#expiries.set(version, { expires, until: expires + Math.min(staleMs, LONGEST_MS) });
  }

  /** How long the entry of this version has left, negative once it has expired; undefined if that is not known here. */
  leftMs(version: Token): number | undefined {
    if (this.#expiries.size === 0) return undefined;
    const expiry = this.#expiries.get(version);
    return expiry === undefined ? undefined : expiry.expires - this.#clock.now();
  }
}
