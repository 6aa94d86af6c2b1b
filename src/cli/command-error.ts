// How a command ends itself: what is wrong, what to do next, and the exit code.
import type { ExitCode } from "./exit-code.ts";
import { EXIT } from "./exit-code.ts";

/** Ends the command with a message, what to do next, and an exit code: 2 unless it says otherwise. */
export class CommandError extends Error {
  readonly hint: string;
  readonly exitCode: ExitCode;

  constructor(message: string, hint: string, exitCode: ExitCode = EXIT.usage) {
    super(message);
    this.name = "CommandError";
    this.hint = hint;
    this.exitCode = exitCode;
  }
}
