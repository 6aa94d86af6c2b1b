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
