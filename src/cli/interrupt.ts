// Ctrl-C: the first press stops the command, which reports its progress; the second exits at once.
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

/** Resolves with the result of `work`, or with undefined once `stop` aborts, so that no command hangs on a dead store. */
export function unlessStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined);
    const settled = (): void => stop.removeEventListener("abort", end);
    stop.addEventListener("abort", end, { once: true });
    if (stop.aborted) end();
    work.then(resolve, reject).finally(settled);
  });
}
