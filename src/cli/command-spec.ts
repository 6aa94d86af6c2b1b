// Static description of a command, available before its code is loaded; help and completion are built from it.
import type { CommandContext } from "./context.ts";
import type { ExitCode } from "./exit-code.ts";

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
