// What a command is called, takes and does, known before its code is loaded: help and completion come from it.
import type { CommandContext } from "./context.ts";
import type { ExitCode } from "./exit-code.ts";

/** What can stand somewhere, for completion. */
export type Completes = "keys" | "tags" | "files" | readonly string[];

export interface OptionSpec {
  /** As in help, such as `-n, --limit <n>`. */
  readonly flags: string;
  readonly summary: string;
  /** Throws InvalidArgumentError. `before` is what the same option gave when it was met earlier. */
  readonly parse?: (text: string, before: unknown) => unknown;
  readonly completes?: Completes;
}

export interface ArgumentSpec {
  /** `<key>`, `[key]` or `<keys...>`. */
  readonly name: string;
  readonly summary: string;
  readonly completes?: Completes;
}

/** A command line and what it does. */
export type Example = readonly [line: string, meaning: string];

export interface CommandInput {
  /** The arguments in order; those of a variadic one follow each other. */
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

export interface CommandModule {
  run(context: CommandContext, input: CommandInput): Promise<ExitCode>;
}

export interface CommandSpec {
  readonly name: string;
  /** Heading under which help lists it. */
  readonly group: "Look" | "Change" | "Tools";
  readonly summary: string;
  /** More, for its own help. */
  readonly detail?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: readonly OptionSpec[];
  readonly examples: readonly Example[];
  readonly isHidden?: true;
  load(): Promise<CommandModule>;
}
