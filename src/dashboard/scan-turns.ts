// The scans of all pages that are open share one budget: one step of one scan at a time, and a bounded number of entries a second.
import type { EntryPage } from "../cache/entry-pages.ts";
import { type Clock, pause } from "../core/clock.ts";

/** Entries looked at per second at most, so that looking does not slow the application. */
const SCANNED_PER_SECOND = 50_000;

export class ScanTurns {
  readonly #clock: Clock;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The pages of a scan, each in its turn: a long scan delays the others by a step, and a reader that has stopped reading by none. */
  async *pages(scan: AsyncIterable<EntryPage>, signal: AbortSignal): AsyncGenerator<EntryPage> {
    const iterator = scan[Symbol.asyncIterator]();
    const left = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    try {
      for (;;) {
        const next = signal.aborted ? undefined : await this.#step(iterator, left, signal);
        if (next === undefined || next.done) return;
        yield next.value;
      }
    } finally {
      // Not awaited: a step may hang with its store.
      void Promise.resolve(iterator.return?.()).catch(() => {});
    }
  }

  /** Undefined if the reader has gone before its turn came. */
  async #step(
    iterator: AsyncIterator<EntryPage>,
    left: Promise<void>,
    signal: AbortSignal,
  ): Promise<IteratorResult<EntryPage> | undefined> {
    const before = this.#last;
    let end: () => void = () => {};
    this.#last = new Promise<void>((resolve) => {
      end = resolve;
    });
    await Promise.race([before, left]);
    if (signal.aborted) {
      void before.then(end);
      return undefined;
    }
    let scanned = 0;
    try {
      const next = await iterator.next();
      if (!next.done) scanned = next.value.scanned;
      return next;
    } finally {
      if (scanned === 0) end();
      else void pause(this.#clock, (scanned / SCANNED_PER_SECOND) * 1_000).then(end);
    }
  }
}
