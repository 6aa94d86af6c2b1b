// Reads a key repeatedly, and records what was seen when.
import type { XCache } from "../../../src/xcache.ts";
import { until } from "../until.ts";

interface Sight {
  readonly began: number;
  readonly ended: number;
  readonly value: unknown;
}

/** Failed reads leave no trace. */
export class Watcher {
  readonly #cache: XCache;
  readonly #key: string;
  readonly #sights: Sight[] = [];
  #isOver = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(cache: XCache, key: string) {
    this.#cache = cache;
    this.#key = key;
  }

  start(): void {
    this.#running = until(
      async () => {
        await this.#look().catch(() => {});
        return this.#isOver;
      },
      { what: "the watcher is stopped", timeoutMs: 120_000 },
    );
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  /** Resolves when a read that began after `moment` has seen something else. */
  async losesSightOf(value: unknown, moment: number): Promise<void> {
    await until(() => this.#sights.some((sight) => sight.began > moment && sight.value !== value), {
      what: `${String(value)} is seen no more`,
    });
  }

  /** When the value was seen last; undefined if never. */
  lastSightOf(value: unknown): number | undefined {
    return this.#sights.findLast((sight) => sight.value === value)?.ended;
  }

  async #look(): Promise<void> {
    const began = performance.now();
    const value = await this.#cache.get(this.#key);
    this.#sights.push({ began, ended: performance.now(), value });
  }
}
