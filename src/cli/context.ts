// What every command receives: output, global flags, environment, input and the stop signals.
import type { Environment } from "../config/env.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Output } from "./terminal/output.ts";

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
