// Every command once, in the order of the help, but for the one that asks this table.
import type { CommandSpec } from "../command-spec.ts";
import { LOOK } from "./read.ts";
import { TOOLS } from "./tools.ts";
import { CHANGE } from "./write.ts";

export const COMMANDS: readonly CommandSpec[] = [...LOOK, ...CHANGE, ...TOOLS];
