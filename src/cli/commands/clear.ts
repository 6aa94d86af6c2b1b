// xcache clear: removes every entry of a prefix or namespace.
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { confirmAndRemove } from "../entries/removal.ts";
import type { ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { namespace = [] } = context.flags;
  const work = (session: Session): Promise<ExitCode> => {
    const prefix = session.settings.config.keyPrefix;
    const place =
      namespace.length === 0 ? "" : ` in the namespace "${escapeControls(namespace.join(" / "))}"`;
    return confirmAndRemove(context, {
      what: `of the prefix "${escapeControls(prefix)}"${place} at ${session.address}`,
      facts: { prefix, namespace },
      isDryRun: options.dryRun === true,
      isConfirmed: options.yes === true,
      count: () => estimate(session),
      remove: async () => {
        await session.cache.clear();
        return { entries: undefined };
      },
    });
  };
  return withSession(context, work, { reportsProgress: true });
}

/** An estimate is enough: an exact count would need a scan. */
async function estimate({
  cache,
  store,
}: Session): Promise<{ entries: number | undefined; isEstimate: boolean }> {
  if (!store.backend.capabilities.scan) return { entries: undefined, isEstimate: true };
  const { totalKeys, approximate } = await cache.getStats();
  return { entries: totalKeys, isEstimate: approximate };
}
