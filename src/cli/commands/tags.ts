// xcache tags: the tags of an entry.
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { missingEntry } from "../entries/missing-entry.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";

export function run(context: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const key = args[0] ?? "";
  return withSession(context, async ({ cache }) => {
    const tags = await cache.tags(key);
    if (tags === undefined) throw missingEntry(key);
    if (out.json) await out.jsonLine({ key, tags });
    else if (tags.length === 0) out.note("the entry has no tags");
    else await out.lines(tags.map(escapeControls));
    return EXIT.ok;
  });
}
