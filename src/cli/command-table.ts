// Every command once, in the order of the help, but for the one that asks this table.
import type { CommandSpec } from "./command-spec.ts";
import { CHANGE } from "./specs/change.ts";
import { LOOK } from "./specs/look.ts";
import { TOOLS } from "./specs/tools.ts";

export const COMMANDS: readonly CommandSpec[] = [...LOOK, ...CHANGE, ...TOOLS];
