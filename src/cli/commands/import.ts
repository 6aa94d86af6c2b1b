// xcache import: the entries of an exported file.
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { importFile } from "../entries/import-file.ts";
import type { ExitCode } from "../exit-code.ts";

export function run(context: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  return importFile(context, args[0] ?? "-", { onlyAbsent: false });
}
