// A process of stampede-member.mjs, from its start to its end; it never outlives its parent.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { CacheConfig } from "../../../src/config/types.ts";

const FILE = join(import.meta.dirname, "stampede-member.mjs");

/** Handed to it. */
export interface StampedeSettings {
  readonly config: CacheConfig;
  readonly key: string;
  /** How many ask for the key at once. */
  readonly callers: number;
  /** Whether no time passes for its cache. Default: false. */
  readonly isClockStill?: boolean;
}

/** What it says, in this order; only one that loads says so. */
interface Sayings {
  readonly ready: object;
  readonly asked: object;
  readonly loading: object;
  readonly answered: { readonly loads: number; readonly values: readonly unknown[] };
}

export class StampedeProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #said = new Map<string, object>();

  constructor(settings: StampedeSettings) {
    this.#child = fork(FILE, [JSON.stringify(settings)]);
    this.#child.on("message", (message: { said: string }) => this.#said.set(message.said, message));
  }

  /** Resolves when it says this, or has said it. */
  async heard<Word extends keyof Sayings>(word: Word): Promise<Sayings[Word]> {
    for (;;) {
      const message = this.#said.get(word);
      if (message !== undefined) return message as Sayings[Word];
      if (!this.#child.connected) throw new Error(`a process ended before it said "${word}"`);
      await Promise.race([once(this.#child, "message"), once(this.#child, "disconnect")]);
    }
  }

  /** First it is told to ask, then what its load brings. */
  tell(word: object): void {
    this.#child.send(word);
  }

  /** Ends it in the middle of whatever it does. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
