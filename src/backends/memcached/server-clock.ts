// An estimate of a server's time, which it tells in whole seconds only.
//
// A server counts seconds by a timer of its own. Whatever it answers was so at some moment between question and answer,
// which bounds its time to a second. A question asked when the next second is as likely to have begun as not halves the
// bounds, so a few of them find the second's beginning to some milliseconds.

/** By how much two clocks may drift apart, in milliseconds a millisecond. */
const DRIFT = 1 / 2_000;
/** How late a server's timer may fire. */
const JITTER_MS = 4;
/** Closer bounds are not worth a question. */
const CLOSE_MS = 25;
/** A question makes bounds of a second; wider ones have not been looked at for a while. */
const USABLE_MS = 1_500;
/** So far from a beginning a question is asked that must not meet it. */
const BESIDE_MS = 10;
/** How often bounds that are close are looked at again. */
const LOOK_EVERY_MS = 2_000;
const SECOND = 1_000;

export class ServerClock {
  /** Bounds of the server's time minus ours, as they were when it was last asked. */
  #low = 0;
  #high = 0;
  #at = 0;
  /** How long questions took; the bounds cannot be closer than that. */
  #tripMs = 0;
  #answers = 0;

  /** When it was last asked, in local time; 0 for never. */
  get askedAt(): number {
    return this.#at;
  }

  /** Takes in that the server said `seconds`. */
  take(seconds: number, sentAt: number, receivedAt: number): void {
    const low = seconds * SECOND - receivedAt;
    const high = (seconds + 1) * SECOND + JITTER_MS - sentAt;
    const before = this.#at === 0 ? undefined : { low: this.low(receivedAt), high: this.high(receivedAt) };
    // Where the two do not fit, the server has another clock than before.
    const fits = before !== undefined && low <= before.high && high >= before.low;
    this.#low = fits ? Math.max(low, before.low) : low;
    this.#high = fits ? Math.min(high, before.high) : high;
    this.#tripMs = receivedAt - sentAt;
    this.#answers++;
    this.#at = receivedAt;
  }

  /** The server's time minus ours is at least this. */
  low(now: number): number {
    return this.#low - this.#drift(now);
  }

  /** And at most this. */
  high(now: number): number {
    return this.#high + this.#drift(now);
  }

  /** Whether it was asked so lately that the bounds are of use. */
  isKnown(now: number): boolean {
    return this.high(now) - this.low(now) <= USABLE_MS;
  }

  /** Whether the second's beginning has been found. */
  isClose(now: number): boolean {
    return this.#at > 0 && this.high(now) - this.low(now) <= 2 * (CLOSE_MS + this.#tripMs);
  }

  /**
   * In how long to ask next: when a second of the server begins, as far as is known. Once that is known closely, just before
   * the earliest and just after the latest it may be, by turns: a clock that has leapt shows there.
   */
  nextIn(now: number): number {
    const width = this.high(now) - this.low(now);
    const isEnough = width <= CLOSE_MS + this.#tripMs;
    const soonest = isEnough ? LOOK_EVERY_MS : 0;
    const beside = (width / 2 + BESIDE_MS + this.#tripMs) * (this.#answers % 2 === 0 ? -1 : 1);
    const beginning = (this.low(now) + this.high(now)) / 2;
    const aim = isEnough ? beside : 0;
    const until = SECOND - ((now + soonest + beginning - aim) % SECOND);
    // A question on its way takes half a trip.
    return Math.max(1, soonest + until - this.#tripMs / 2);
  }

  #drift(now: number): number {
    return Math.max(0, now - this.#at) * DRIFT;
  }
}
