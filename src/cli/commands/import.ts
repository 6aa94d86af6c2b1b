// xcache import and xcache warm: store the entries of a file.
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { importFile } from "../entries/import-file.ts";
import type { ExitCode } from "../exit-code.ts";

/** Replaces entries that already exist. */
export function run(context: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  return importFile(context, args[0] ?? "-", { onlyAbsent: false });
}

interface WarmOptions {
  /** Seconds, for entries without a ttl of their own. */
  readonly ttl?: number;
  /** Added to the tags of every entry. */
  readonly tags?: readonly string[];
}

/** Keeps entries that already exist. */
export function warm(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { ttl: defaultTtl, tags: extraTags = [] } = options as WarmOptions;
  return importFile(context, args[0] ?? "-", {
    onlyAbsent: true,
    prepare: ({ ttl = defaultTtl, tags, ...entry }) => ({ ...entry, ttl, tags: [...tags, ...extraTags] }),
  });
}
