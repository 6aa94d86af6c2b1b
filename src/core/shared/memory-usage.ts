// How full a store is: it is asked in the background, when somebody wants to know and the answer at hand is old.
import type { Backend } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { BackendError, OperationTimeoutError } from "../errors.ts";
import { withDeadline } from "../resilience/with-deadline.ts";

/** A server that is near its bound is so for longer. */
const EVERY_MS = 10_000;

export class MemoryUsageMonitor {
  readonly #backend: Pick<Backend, "fill">;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #mayAsk: () => boolean;
  /** undefined: nothing was learnt yet. */
  #known: number | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #look: Promise<void> | undefined;

  /** `mayAsk` says whether the store may be asked at present. A look takes `limitMs` at most. */
  constructor(backend: Pick<Backend, "fill">, clock: Clock, limitMs: number, mayAsk: () => boolean) {
    this.#backend = backend;
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#mayAsk = mayAsk;
  }

  /** What was learnt last, 0 to 1; 0 while nothing is known, and where there is no bound. */
  latest(): number {
    this.#lookIfDue();
    return this.#known ?? 0;
  }

  /** As `latest`, but a first look that is under way is waited for, as long as `spentMs` leave time. Never rejects. */
  async first(spentMs: number): Promise<number> {
    this.#lookIfDue();
    const leftMs = this.#limitMs - spentMs;
    if (this.#known === undefined && this.#look !== undefined && leftMs > 0) {
      await withDeadline(this.#clock, leftMs, this.#look, () => {});
    }
    return this.#known ?? 0;
  }

  /** The store is left: what was known of it may not hold when it is used again. */
  forget(): void {
    this.#known = undefined;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.#look = undefined;
  }

  #lookIfDue(): void {
    if (this.#backend.fill === undefined || this.#look !== undefined) return;
    const now = this.#clock.now();
    if (now - this.#lookedAt < EVERY_MS || !this.#mayAsk()) return;
    this.#lookedAt = now;
    const look: Promise<void> = this.#ask().then(
      (fill) => this.#end(look, () => this.#learn(fill)),
      (error: unknown) => this.#end(look, () => this.#miss(error)),
    );
    this.#look = look;
  }

  async #ask(): Promise<number | undefined> {
    const asked = (async () => this.#backend.fill?.())();
    return withDeadline(this.#clock, this.#limitMs, asked, () => {
      throw new OperationTimeoutError("the store did not say in time how full it is");
    });
  }

  /** One that was begun before the store was left tells nothing. */
  #end(look: Promise<void>, told: () => void): void {
    if (this.#look !== look) return;
    this.#look = undefined;
    told();
  }

  #learn(fill: number | undefined): void {
    this.#known = typeof fill === "number" && fill > 0 ? Math.min(1, fill) : 0;
  }

  /** What was known stands. That a store is not connected was found out without asking it: the next look need not wait. */
  #miss(error: unknown): void {
    if (error instanceof BackendError && error.code === "DISCONNECTED") {
      this.#lookedAt = Number.NEGATIVE_INFINITY;
    }
  }
}
