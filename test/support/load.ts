// A steady load of reads and writes on a cache, and the outcome of each.
import { setTimeout as pause } from "node:timers/promises";
import type { XCache } from "../../src/xcache.ts";

const EVERY_MS = 10;
const READS = 4;

/** 600 requests a second: four reads, one of what is known about an entry, and a write every ten milliseconds. */
export class Load {
  readonly reads: Error[] = [];
  readonly writes: Error[] = [];
  /** When the latest failure was seen and when the latest success was, by performance.now(). */
  failedAt = Number.NEGATIVE_INFINITY;
  succeededAt = Number.NEGATIVE_INFINITY;
  /** Every state that the circuit breaker has entered. */
  readonly states: string[] = [];
  served = 0;
  readonly #cache: XCache;
  readonly #calls: Promise<void>[] = [];
  #sent = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(cache: XCache) {
    this.#cache = cache;
    cache.on("state", ({ what, state }) => {
      if (what === "circuit_breaker") this.states.push(state);
    });
    // Without a listener the first failure is a warning of the process.
    cache.on("error", () => {});
  }

  /** Of writes sent and not answered. */
  get writesInFlight(): number {
    return this.#writing;
  }

  #writing = 0;

  async start(): Promise<void> {
    for (let key = 0; key < 10; key++) await this.#cache.set(`k${key}`, key);
    this.#timer = setInterval(() => this.#send(), EVERY_MS);
  }

  async run(ms: number): Promise<void> {
    await pause(ms);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#calls);
  }

  #send(): void {
    for (let read = 0; read < READS; read++)
      this.#watch(this.#cache.get(`k${this.#sent++ % 10}`), this.reads);
    this.#watch(this.#cache.ttl(`k${this.#sent % 10}`), this.reads);
    this.#writing++;
    const written = this.#cache.set(`w${this.#sent % 50}`, this.#sent).finally(() => {
      this.#writing--;
    });
    this.#watch(written, this.writes);
  }

  #watch(call: Promise<unknown>, failures: Error[]): void {
    const watched = call.then(
      () => {
        this.served++;
        this.succeededAt = performance.now();
      },
      (error: Error) => {
        failures.push(error);
        this.failedAt = performance.now();
      },
    );
    this.#calls.push(watched);
  }
}
