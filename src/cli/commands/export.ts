// xcache export: entries to a file, with their values, tags and expiry.
import { systemClock } from "../../core/clock.ts";
import type { Inspection } from "../../core/space.ts";
import { counted } from "../amount.ts";
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { durationText } from "../duration.ts";
import { entryLine } from "../entry-line.ts";
import { type EntryFilter, scanEntries } from "../entry-scan.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type ExportTarget, openTarget } from "../export-target.ts";
import { Progress } from "../progress.ts";
import { type Session, withSession } from "../session.ts";
import { visible } from "../visible-text.ts";

/** Values that are held at once. */
const TOGETHER = 100;

export function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const {
    pattern,
    tag: tags,
    force = false,
  } = options as { pattern?: string; tag?: string[]; force?: boolean };
  const { out, stop, interrupt } = context;
  const file = args[0] ?? "-";
  const filter: EntryFilter = { ...(pattern && { pattern }), ...(tags && { tags }) };
  return withSession(context, async (session) => {
    const total = Object.keys(filter).length === 0 ? (await session.space.usage(false)).keys : undefined;
    const target = openTarget(out, file, force);
    const progress = new Progress(out, session.clock);
    let written = 0;
    for await (const batch of scanEntries(session, filter, stop)) {
      for (let at = 0; at < batch.length && !stop.aborted; at += TOGETHER) {
        written += await writeEntries(session, target, batch.slice(at, at + TOGETHER));
        progress.update(written, total === undefined ? undefined : written / Math.max(1, total));
      }
    }
    const seconds = progress.end();
    if (interrupt.isRaised) {
      const left = await target.leave();
      out.say(
        `interrupted after ${counted(written, "entry", "entries")}${left === undefined ? "" : `, which are in ${visible(left)}`}`,
      );
      return EXIT.interrupted;
    }
    await target.finish();
    // On the standard output there is nothing but the entries.
    if (file === "-") return EXIT.ok;
    const duration = Math.round(seconds * 1_000) / 1_000;
    if (out.json) await out.jsonLine({ file, exported: written, duration_seconds: duration });
    else
      await out.line(
        `wrote ${counted(written, "entry", "entries")} to ${visible(file)} in ${durationText(seconds)}`,
      );
    return EXIT.ok;
  });
}

/** Those that are still there. */
async function writeEntries(
  { cache }: Session,
  target: ExportTarget,
  entries: readonly Inspection[],
): Promise<number> {
  const values = await cache.getMany(entries.map(({ key }) => key));
  const now = systemClock.wall?.() ?? systemClock.now();
  let written = 0;
  for (const entry of entries) {
    if (!values.has(entry.key)) continue;
    await target.line(entryLine(entry, values.get(entry.key), now));
    written++;
  }
  return written;
}
