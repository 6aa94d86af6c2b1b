// A load that a test can finish on demand.
import type { LoadContext } from "../../../src/core/options.ts";
import { settle } from "../../../src/testing/manual-clock.ts";

export class Gate<T> {
  readonly contexts: LoadContext<T>[] = [];
  readonly #pending: { resolve(value: T): void; reject(error: unknown): void }[] = [];

  readonly load = (context: LoadContext<T>): Promise<T> => {
    this.contexts.push(context);
    return new Promise((resolve, reject) => this.#pending.push({ resolve, reject }));
  };

  get calls(): number {
    return this.contexts.length;
  }

  /** Ends the oldest load that is still running. */
  async finish(value: T): Promise<void> {
    await settle();
    this.#pending.shift()?.resolve(value);
    await settle();
  }

  async fail(error: unknown): Promise<void> {
    await settle();
    this.#pending.shift()?.reject(error);
    await settle();
  }
}
