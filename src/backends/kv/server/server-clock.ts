// An estimate of a server's time, from TIME commands: the reported time was some moment between sending and receiving.
import type { Reply } from "../resp/reply.ts";

/** How far two clocks may drift apart, in milliseconds per millisecond. */
const DRIFT = 1 / 2_000;

export class ServerClock {
  /** The server's time minus ours. Plain fields: every operation reads them several times. */
  offset = 0;
  /** When it was last set, in local time; 0 for never. */
  setAt = 0;
  #errorMs = Number.POSITIVE_INFINITY;

  /** Updates the estimate with the reply to TIME. */
  set(answer: Reply, sentAt: number, receivedAt: number): void {
    const [seconds, microseconds] = (answer as readonly Reply[]).map((part) => Number(String(part)));
    if (seconds === undefined || microseconds === undefined || Number.isNaN(seconds + microseconds)) return;
    this.offset = seconds * 1_000 + microseconds / 1_000 - (sentAt + receivedAt) / 2;
    this.#errorMs = (receivedAt - sentAt) / 2 + 1;
    this.setAt = receivedAt;
  }

  /** How far the offset may be off by now. */
  errorMs(now: number): number {
    return this.#errorMs + Math.max(0, now - this.setAt) * DRIFT;
  }
}
