// xcache delete: removes entries by key.
import { type CacheInside, insideOf } from "../../cache/inside.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { withSession } from "../session.ts";
import { counted, countText } from "../terminal/format-number.ts";

export function run(context: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const keys = [...new Set(args)];
  return withSession(context, async ({ cache }) => {
    const deleted = await (insideOf(cache) as CacheInside).deleteUnread(keys);
    if (out.json) await out.jsonLine({ requested: keys.length, deleted });
    else await out.line(`deleted ${countText(deleted)} of ${counted(keys.length, "key")}`);
    return EXIT.ok;
  });
}
