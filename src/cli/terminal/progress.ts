// Progress of a long command: a bar with rate and time left on a terminal, nothing elsewhere.
import type { Clock } from "../../core/clock.ts";
import { truncate } from "./display-width.ts";
import { durationText } from "./format-duration.ts";
import { countText } from "./format-number.ts";
import { type Output, sizeOf } from "./output.ts";

const REFRESH_MS = 100;
const BAR_WIDTH = 24;
const CLEAR_LINE = "\r\u001b[2K";

export class Progress {
  readonly #out: Output;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #shownAt = 0;
  #isShown = false;

  constructor(out: Output, clock: Clock) {
    this.#out = out;
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** `share`: completed fraction, 0 to 1; undefined if unknown. */
  update(done: number, share: number | undefined): void {
    const now = this.#clock.now();
    if (!this.#out.showsProgress || this.#out.json || now - this.#shownAt < REFRESH_MS) return;
    this.#shownAt = now;
    this.#isShown = true;
    const { stderr } = this.#out;
    const line = progressLine(done, share, (now - this.#startedAt) / 1_000);
    stderr.write(CLEAR_LINE + truncate(line, sizeOf(stderr).columns - 1));
  }

  /** Clears the bar. Returns the elapsed seconds. */
  end(): number {
    if (this.#isShown) this.#out.stderr.write(CLEAR_LINE);
    this.#isShown = false;
    return (this.#clock.now() - this.#startedAt) / 1_000;
  }
}

export function progressLine(done: number, share: number | undefined, seconds: number): string {
  const rate = `${countText(done / Math.max(seconds, 0.001))}/s`;
  if (share === undefined) return `${countText(done)}  ${rate}`;
  const full = Math.round(Math.min(1, share) * BAR_WIDTH);
  const left = share > 0 ? Math.max(0, seconds / Math.min(1, share) - seconds) : undefined;
  const percent = `${Math.floor(Math.min(1, share) * 100)} %`.padStart(5);
  return `${"█".repeat(full)}${"░".repeat(BAR_WIDTH - full)} ${percent}  ${countText(done)}  ${rate}  ${durationText(left)} left`;
}
