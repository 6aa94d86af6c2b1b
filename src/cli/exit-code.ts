// Exit codes, which scripts rely on, and the error that ends a command with one.

export const EXIT = {
  ok: 0,
  /** The command failed, the store is unhealthy, or the entry does not exist. */
  failed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  unreachable: 3,
  /** The store does not support it, or an optional package is missing. */
  unsupported: 4,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with a message, a hint what to do next, and an exit code (default: 2). */
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
