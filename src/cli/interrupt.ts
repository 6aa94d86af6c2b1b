// Ctrl-C: the first one ends what is under way and lets it say how far it came, the second one ends the program.
import { EXIT } from "./exit-code.ts";

export class Interrupt {
  readonly #controller = new AbortController();

  /** Aborts on Ctrl-C. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isRaised(): boolean {
    return this.signal.aborted;
  }

  readonly raise = (): void => {
    if (this.isRaised) process.exit(EXIT.interrupted);
    this.#controller.abort();
  };

  listen(): () => void {
    process.on("SIGINT", this.raise);
    return () => process.off("SIGINT", this.raise);
  }
}

/** What `work` gives, or undefined as soon as `stop` aborts: nobody is to wait for a store that does not answer. */
export function unlessStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined);
    const settled = (): void => stop.removeEventListener("abort", end);
    stop.addEventListener("abort", end, { once: true });
    if (stop.aborted) end();
    work.then(resolve, reject).finally(settled);
  });
}
