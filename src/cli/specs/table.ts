// Every command once, in the order of the help, but for the one that asks this table.
import type { CommandSpec } from "../command-spec.ts";
import { READ_COMMANDS } from "./read.ts";
import { TOOLS } from "./tools.ts";
import { WRITE_COMMANDS } from "./write.ts";

export const COMMANDS: readonly CommandSpec[] = [...READ_COMMANDS, ...WRITE_COMMANDS, ...TOOLS];
