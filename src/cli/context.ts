// What a command is given to work with.
import type { Environment } from "../config/env.ts";
import type { GlobalFlags } from "./global-flags.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Output } from "./terminal/output.ts";

export interface CommandContext {
  readonly out: Output;
  readonly flags: GlobalFlags;
  readonly env: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly interrupt: Interrupt;
  /** Ends a scan: Ctrl-C, or nobody reads on. */
  readonly stop: AbortSignal;
}
