// Memory usage of a store, read in the background when somebody asks and the last reading is old.
import type { Backend } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { BackendError, OperationTimeoutError } from "../errors.ts";
import { withDeadline } from "../resilience/with-deadline.ts";

/** Usage changes slowly. */
const EVERY_MS = 10_000;

export class MemoryUsageMonitor {
  readonly #backend: Pick<Backend, "memoryUsage">;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #mayRead: () => boolean;
  /** undefined until the first reading. */
  #known: number | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** `mayRead`: whether the store may be asked at present. A reading takes `limitMs` at most. */
  constructor(backend: Pick<Backend, "memoryUsage">, clock: Clock, limitMs: number, mayRead: () => boolean) {
    this.#backend = backend;
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#mayRead = mayRead;
  }

  /** The last reading, 0 to 1; 0 before the first one, and for a store without a limit. */
  latest(): number {
    this.#readIfDue();
    return this.#known ?? 0;
  }

  /** As `latest`, but awaits a first reading in progress within what `spentMs` leaves of the limit. Never rejects. */
  async first(spentMs: number): Promise<number> {
    this.#readIfDue();
    const leftMs = this.#limitMs - spentMs;
    if (this.#known === undefined && this.#reading !== undefined && leftMs > 0) {
      await withDeadline(this.#clock, leftMs, this.#reading, () => {});
    }
    return this.#known ?? 0;
  }

  /** On disconnect: the reading may not hold when the store is used again. */
  forget(): void {
    this.#known = undefined;
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#reading = undefined;
  }

  #readIfDue(): void {
    if (this.#backend.memoryUsage === undefined || this.#reading !== undefined) return;
    const now = this.#clock.now();
    if (now - this.#readAt < EVERY_MS || !this.#mayRead()) return;
    this.#readAt = now;
    const reading: Promise<void> = this.#fetch().then(
      (usage) => this.#end(reading, () => this.#learn(usage)),
      (error: unknown) => this.#end(reading, () => this.#miss(error)),
    );
    this.#reading = reading;
  }

  async #fetch(): Promise<number | undefined> {
    const fetched = (async () => this.#backend.memoryUsage?.())();
    return withDeadline(this.#clock, this.#limitMs, fetched, () => {
      throw new OperationTimeoutError("timed out reading the store's memory usage");
    });
  }

  /** A reading begun before a disconnect is ignored. */
  #end(reading: Promise<void>, use: () => void): void {
    if (this.#reading !== reading) return;
    this.#reading = undefined;
    use();
  }

  #learn(usage: number | undefined): void {
    this.#known = typeof usage === "number" && usage > 0 ? Math.min(1, usage) : 0;
  }

  /** Keeps the last reading. When not connected, the store was not even asked: the next reading need not wait. */
  #miss(error: unknown): void {
    if (error instanceof BackendError && error.code === "DISCONNECTED") {
      this.#readAt = Number.NEGATIVE_INFINITY;
    }
  }
}
