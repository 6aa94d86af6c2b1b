// xcache warm: entries from a file, where there are none yet.
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { importFile } from "../entries/import-file.ts";
import type { ExitCode } from "../exit-code.ts";

export function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { ttl: usual, tag: common = [] } = options as { ttl?: number; tag?: readonly string[] };
  return importFile(context, args[0] ?? "-", {
    onlyAbsent: true,
    prepare: ({ ttl = usual, tags, ...entry }) => ({ ...entry, ttl, tags: [...tags, ...common] }),
  });
}
