// Runs the program, or a shell, in a pseudo-terminal, by `script` of util-linux.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { until } from "../../support/until.ts";
import { bareEnvironment, installedProgram } from "./installed.ts";
import { screenOf } from "./screen.ts";

export interface TerminalOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly columns?: number;
  readonly rows?: number;
}

/** A word as any shell of the Bourne family reads it. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

export class CommandTerminal {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #output = "";

  constructor(words: readonly string[], { env = {}, cwd, columns = 100, rows = 30 }: TerminalOptions = {}) {
    const command = `stty cols ${columns} rows ${rows}; exec ${words.map(quoted).join(" ")}`;
    this.#child = spawn("script", ["-qec", command, "/dev/null"], {
      env: bareEnvironment({ SHELL: "/bin/sh", ...env }),
      stdio: ["pipe", "pipe", "inherit"],
      ...(cwd !== undefined && { cwd }),
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
    });
    this.#closed = once(this.#child, "close");
  }

  /** Everything that was written, including escape sequences. */
  get output(): string {
    return this.#output;
  }

  /** What the screen would show. */
  get screen(): readonly string[] {
    return screenOf(this.#output);
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  shows(what: string | RegExp): Promise<true> {
    const isShown = (): boolean => {
      const text = this.screen.join("\n");
      return typeof what === "string" ? text.includes(what) : what.test(text);
    };
    return until(isShown, {
      what: `the screen shows ${what}, not\n${this.screen.join("\n")}`,
    }) as Promise<true>;
  }

  /** The exit code. */
  async ended(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }
}

/** A terminal with nothing but the program in it. */
export class PseudoTerminal extends CommandTerminal {
  constructor(args: readonly string[], options: TerminalOptions = {}) {
    super([process.execPath, installedProgram(), ...args], options);
  }
}
