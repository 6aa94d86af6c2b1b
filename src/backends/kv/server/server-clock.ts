// An estimate of a server's time, from TIME commands: the reported time was some moment between sending and receiving.
import { BRIDGED_STEP_MS } from "../../../core/backend.ts";
import type { Reply } from "../resp/reply.ts";

/** How far two clocks may drift apart, in milliseconds per millisecond. */
const DRIFT = 1 / 2_000;

const LEAP_MS = 1_000;

/** What a server replied to TIME. */
export interface ClockReading {
  /** The server's time. */
  readonly reported: number;
  /** The server's time minus ours, and the maximum error of that. */
  readonly offset: number;
  readonly errorMs: number;
  /** When the reply arrived, in local time. */
  readonly at: number;
}

export function clockReading(answer: Reply, sentAt: number, receivedAt: number): ClockReading | undefined {
  const [seconds, microseconds] = (answer as readonly Reply[]).map((part) => Number(String(part)));
  if (seconds === undefined || microseconds === undefined || Number.isNaN(seconds + microseconds))
    return undefined;
  const reported = seconds * 1_000 + microseconds / 1_000;
  const offset = reported - (sentAt + receivedAt) / 2;
  return { reported, offset, errorMs: (receivedAt - sentAt) / 2 + 1, at: receivedAt };
}

export class ServerClock {
  /** The server's time minus ours. Plain fields: every operation reads them several times. */
  offset = 0;
  /** When it was last set, in local time; 0 for never. */
  setAt = 0;
  /** What it last reported. */
  reported = 0;
  #errorMs = Number.POSITIVE_INFINITY;

  take(reading: ClockReading): void {
    this.offset = reading.offset;
    this.#errorMs = reading.errorMs;
    this.setAt = reading.at;
    this.reported = reading.reported;
  }

  /**
   * Whether the server's clock was set back so far that expired entries would be fresh again. The server has reported a
   * later time before: otherwise it may be our own clock that has leapt.
   */
  isSetBack(reading: ClockReading): boolean {
    if (this.setAt === 0 || reading.reported >= this.reported) return false;
    return this.offset - reading.offset > BRIDGED_STEP_MS;
  }

  /** Whether the clocks have moved against each other by more than errors of measurement. */
  hasLeapt(reading: ClockReading): boolean {
    const movedMs = Math.abs(this.offset - reading.offset);
    return this.setAt > 0 && movedMs > LEAP_MS + reading.errorMs + this.errorMs(reading.at);
  }

  /** How far the offset may be off by now. */
  errorMs(now: number): number {
    return this.#errorMs + Math.max(0, now - this.setAt) * DRIFT;
  }
}
