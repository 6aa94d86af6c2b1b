// An estimate of a server's time, which it reports in whole seconds only.
//
// A server counts seconds by a timer of its own. The second it reports was current at some moment between request and reply,
// which bounds its time to a second. A request sent when the next second is as likely to have begun as not halves the
// interval, so a few requests find the beginning of the second to within some milliseconds.
//
// The timer is rearmed for a second whenever it has fired, and fires a millisecond late: its seconds take 1,001 ms. Once it
// has fallen behind by a whole second it skips one, every quarter of an hour. Not all processes notice that at once: one that
// does writes as if it had not happened until the others must have noticed too, and one that has not asked for long allows for it.

/** How far the server's time may run ahead of ours, in milliseconds per millisecond. */
const GAIN = 1 / 2_000;
/** How far it may fall behind. */
const LOSS = 1 / 500;
/** How late a server's timer may fire, beyond that: the next seconds begin as much later. */
const LATE_MS = 4;
/** Closer bounds are not worth a request. */
const CLOSE_MS = 30;
/** One request bounds the time to a second; wider bounds are out of date. */
const USABLE_MS = 1_500;
/** How far from the beginning of a second a request is sent that must not coincide with it. */
const BESIDE_MS = 14;
/** How often close bounds are checked again. */
const CHECK_EVERY_MS = 2_000;
/** In how long to ask again after a reply that fits both a skipped second and none. */
const UNCLEAR_MS = 100;
/** By when a process in use has asked again. */
const ASKED_WITHIN_MS = 4_000;
const SECOND = 1_000;

/** Of the server's time minus ours, as they were at a moment of ours. */
interface Bounds {
  readonly low: number;
  readonly high: number;
  readonly at: number;
}

export class ServerClock {
  #known: Bounds | undefined;
  /** After a reply that fits both: the bounds if no second was skipped before it, and if one was. */
  #unclear: { readonly same: Bounds; readonly skipped: Bounds } | undefined;
  /** Whether the beginning of a second has been found since the server's clock was last changed. */
  #wasClose = false;
  /** When the server was last found to have skipped a second. */
  #skippedAt = Number.NEGATIVE_INFINITY;
  /** How long the latest request took; the bounds cannot be closer than that. */
  #tripMs = 0;
  /** Whether the latest check was to come just before the second may begin. */
  #isEarly = false;

  /** When it last gave a clear reply, in local time; 0 for never. */
  get askedAt(): number {
    return this.#known?.at ?? 0;
  }

  /** Updates the bounds: the server reported `seconds`. */
  take(seconds: number, sentAt: number, receivedAt: number): void {
    const reply: Bounds = {
      low: seconds * SECOND - LATE_MS - receivedAt,
      high: (seconds + 1) * SECOND + LATE_MS - sentAt,
      at: receivedAt,
    };
    this.#tripMs = receivedAt - sentAt;
    this.#forgetIfVague(receivedAt);
    const same = within(reply, this.#unclear?.same ?? this.#known);
    const skipped = within(reply, this.#ifSkipped(receivedAt));
    if (same !== undefined && skipped !== undefined) {
      // As if this reply had not come, until the next one tells which.
      this.#unclear = { same, skipped };
      return;
    }
    // If neither is possible, the server's clock was changed.
    const next = same ?? skipped ?? reply;
    if (this.#known !== undefined && next.low > later(this.#known, receivedAt).high)
      this.#skippedAt = receivedAt;
    this.#known = next;
    this.#unclear = undefined;
    this.#wasClose = next !== reply && (this.#wasClose || this.#isClose(next));
  }

  /** The server's time minus ours is at least this, for every process that may read what is written now. */
  low(now: number): number {
    return this.#bounds(now).low - (now - this.#skippedAt < ASKED_WITHIN_MS ? SECOND : 0);
  }

  /** And at most this. */
  high(now: number): number {
    return this.#bounds(now).high + (now - this.askedAt > ASKED_WITHIN_MS ? SECOND : 0);
  }

  /** Whether the bounds are recent enough to be of use. */
  isKnown(now: number): boolean {
    const { low, high } = this.#bounds(now);
    return high - low <= USABLE_MS;
  }

  /**
   * In how long to ask next: when the next second of the server is expected to begin. Once that is known closely, alternately
   * just before the earliest and just after the latest moment it may begin: that reveals a clock that was changed.
   */
  nextIn(now: number): number {
    // Away from the beginning of a second the reply is clear.
    if (this.#unclear !== undefined) return UNCLEAR_MS + this.#tripMs;
    const bounds = this.#bounds(now);
    const isEnough = this.#isClose(bounds);
    if (isEnough) this.#isEarly = !this.#isEarly;
    const soonest = isEnough ? CHECK_EVERY_MS : 0;
    const beside = ((bounds.high - bounds.low) / 2 + BESIDE_MS + this.#tripMs) * (this.#isEarly ? 1 : -1);
    const beginning = (bounds.low + bounds.high) / 2;
    const aim = isEnough ? beside : 0;
    const until = SECOND - ((now + soonest + beginning - aim) % SECOND);
    // A request takes half a round trip to arrive.
    return Math.max(1, soonest + until - this.#tripMs / 2);
  }

  #isClose({ low, high }: Bounds): boolean {
    return high - low <= CLOSE_MS + this.#tripMs;
  }

  #bounds(now: number): Bounds {
    return this.#known === undefined ? { low: 0, high: 0, at: now } : later(this.#known, now);
  }

  /** After a long pause the bounds are so far apart that no reply could tell a skipped second: as if just connected. */
  #forgetIfVague(now: number): void {
    const { low, high } = this.#bounds(now);
    if (!this.#wasClose || high - low <= SECOND / 2) return;
    this.#known = undefined;
    this.#unclear = undefined;
    this.#wasClose = false;
  }

  /** The bounds if the server has skipped a second since its latest clear reply. */
  #ifSkipped(now: number): Bounds | undefined {
    if (!this.#wasClose) return undefined;
    const { low, high } = this.#bounds(now);
    const [least, most] = [low + SECOND, high + SECOND];
    if (this.#unclear === undefined) return { low: least, high: most, at: now };
    const before = later(this.#unclear.skipped, now);
    return { low: Math.min(least, before.low), high: Math.max(most, before.high), at: now };
  }
}

/** What these bounds are by now. */
function later({ low, high, at }: Bounds, now: number): Bounds {
  const elapsed = Math.max(0, now - at);
  return { low: low - elapsed * LOSS, high: high + elapsed * GAIN, at: now };
}

/** The bounds of a reply, narrowed by earlier ones; undefined if they exclude each other. */
function within({ low, high, at }: Bounds, earlier: Bounds | undefined): Bounds | undefined {
  if (earlier === undefined) return undefined;
  const before = later(earlier, at);
  if (low > before.high || high < before.low) return undefined;
  return { low: Math.max(low, before.low), high: Math.min(high, before.high), at };
}
