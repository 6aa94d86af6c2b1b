// What a command is: its static description, from which help and completion are built before its code is loaded, and what it
// receives: output, global flags, environment, input and the stop signals.
import type { Environment } from "../config/env.ts";
import type { ExitCode } from "./exit-code.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Output } from "./terminal/output.ts";

/** Source of completion candidates for an argument or option value. */
export type Completes = "keys" | "tags" | "files" | readonly string[];

export interface OptionSpec {
  /** As shown in help, such as `-n, --limit <n>`. */
  readonly flags: string;
  readonly summary: string;
  /** Throws InvalidArgumentError. `previous` is the parsed value of an earlier occurrence of the option. */
  readonly parse?: (text: string, previous: unknown) => unknown;
  readonly completes?: Completes;
}

export interface ArgumentSpec {
  /** `<key>`, `[key]` or `<keys...>`. */
  readonly name: string;
  readonly summary: string;
  readonly completes?: Completes;
}

/** A command line and what it shows. */
export type Example = readonly [line: string, meaning: string];

export interface CommandInput {
  /** In order; the values of a variadic argument are listed individually. */
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

export interface GlobalFlags {
  readonly kvUrl?: string;
  readonly config?: string;
  readonly prefix?: string;
  readonly namespace?: readonly string[];
  /** Seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
  /** False after --no-color. */
  readonly color: boolean;
}

export interface CommandContext {
  readonly out: Output;
  readonly flags: GlobalFlags;
  readonly env: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly interrupt: Interrupt;
  /** Aborts on Ctrl-C, or when the reader of stdout has gone away. */
  readonly stop: AbortSignal;
}

export interface CommandModule {
  run(context: CommandContext, input: CommandInput): Promise<ExitCode>;
}

export interface CommandSpec {
  readonly name: string;
  /** The heading it is listed under in help. */
  readonly group: "Inspect" | "Change" | "Tools";
  readonly summary: string;
  /** A further paragraph for the command's own help. */
  readonly detail?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: readonly OptionSpec[];
  readonly examples: readonly Example[];
  readonly isHidden?: true;
  load(): Promise<CommandModule>;
}
