// An estimate of a server's time, which it reports in whole seconds only.
//
// A server counts seconds by a timer of its own. The second it reports was current at some moment between request and reply,
// which bounds its time to a second. A request sent when the next second is as likely to have begun as not halves the
// interval, so a few requests find the beginning of the second to within some milliseconds.
//
// The timer is set anew for a second whenever it has fired, and fires a millisecond late: its seconds take 1,001 ms. Once it
// has fallen behind by a whole second it skips one, every quarter of an hour. Not all processes notice that at once: one that
// does writes as if it had not happened until the others must have noticed too, and one that has not asked for long allows for it.

/** How far the server's time may run ahead of ours, in milliseconds per millisecond. */
const GAIN = 1 / 2_000;
/** How far it may fall behind. */
const LOSS = 1 / 500;
/** How late a server's timer may fire, beyond that: the next seconds begin as much later. */
const LATE_MS = 4;
/** Closer bounds are not worth a request. */
const CLOSE_MS = 25;
/** One request bounds the time to a second; wider bounds are out of date. */
const USABLE_MS = 1_500;
/** How far from the beginning of a second a request is sent that must not coincide with it. */
const BESIDE_MS = 14;
/** How often close bounds are checked again. */
const CHECK_EVERY_MS = 2_000;
/** By when a process in use has asked again. */
const ASKED_WITHIN_MS = 4_000;
const SECOND = 1_000;

export class ServerClock {
  /** Bounds of the server's time minus ours, as they were when it was last asked. */
  #low = 0;
  #high = 0;
  #at = 0;
  /** When the server was last found to have skipped a second. */
  #skippedAt = Number.NEGATIVE_INFINITY;
  /** How long the latest request took; the bounds cannot be closer than that. */
  #tripMs = 0;
  /** Whether the latest check was to come just before the second may begin. */
  #isEarly = false;

  /** When it was last asked, in local time; 0 for never. */
  get askedAt(): number {
    return this.#at;
  }

  /** Updates the bounds: the server reported `seconds`. */
  take(seconds: number, sentAt: number, receivedAt: number): void {
    const low = seconds * SECOND - LATE_MS - receivedAt;
    const high = (seconds + 1) * SECOND + LATE_MS - sentAt;
    const before =
      this.#at === 0 ? undefined : { low: this.#lowest(receivedAt), high: this.#highest(receivedAt) };
    // If the two do not overlap, the server's clock was changed.
    const fits = before !== undefined && low <= before.high && high >= before.low;
    if (before !== undefined && low > before.high) this.#skippedAt = receivedAt;
    this.#low = fits ? Math.max(low, before.low) : low;
    this.#high = fits ? Math.min(high, before.high) : high;
    this.#tripMs = receivedAt - sentAt;
    this.#at = receivedAt;
  }

  /** The server's time minus ours is at least this, for every process that may read what is written now. */
  low(now: number): number {
    return this.#lowest(now) - (now - this.#skippedAt < ASKED_WITHIN_MS ? SECOND : 0);
  }

  /** And at most this. */
  high(now: number): number {
    return this.#highest(now) + (now - this.#at > ASKED_WITHIN_MS ? SECOND : 0);
  }

  /** Whether the bounds are recent enough to be of use. */
  isKnown(now: number): boolean {
    return this.#highest(now) - this.#lowest(now) <= USABLE_MS;
  }

  /**
   * In how long to ask next: when the next second of the server is expected to begin. Once that is known closely, alternately
   * just before the earliest and just after the latest moment it may begin: that reveals a clock that was changed.
   */
  nextIn(now: number): number {
    const [low, high] = [this.#lowest(now), this.#highest(now)];
    const width = high - low;
    const isEnough = width <= CLOSE_MS + this.#tripMs;
    if (isEnough) this.#isEarly = !this.#isEarly;
    const soonest = isEnough ? CHECK_EVERY_MS : 0;
    const beside = (width / 2 + BESIDE_MS + this.#tripMs) * (this.#isEarly ? 1 : -1);
    const beginning = (low + high) / 2;
    const aim = isEnough ? beside : 0;
    const until = SECOND - ((now + soonest + beginning - aim) % SECOND);
    // A request takes half a round trip to arrive.
    return Math.max(1, soonest + until - this.#tripMs / 2);
  }

  #lowest(now: number): number {
    return this.#low - this.#elapsed(now) * LOSS;
  }

  #highest(now: number): number {
    return this.#high + this.#elapsed(now) * GAIN;
  }

  #elapsed(now: number): number {
    return Math.max(0, now - this.#at);
  }
}
