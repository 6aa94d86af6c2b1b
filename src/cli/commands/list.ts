// xcache list: prints keys while it scans, in bounded memory.
import type { EntryInfo } from "../../cache/entry-pages.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { type EntryFilter, entryRow, scanEntries } from "../entries/entry-scan.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { padEnd, padStart } from "../terminal/display-width.ts";
import { escapeControls } from "../terminal/escape.ts";
import { durationText } from "../terminal/format-duration.ts";
import { bytesText, counted } from "../terminal/format-number.ts";
import type { Output } from "../terminal/output.ts";

interface Options {
  readonly pattern?: string;
  readonly tags?: readonly string[];
  readonly limit?: number;
  readonly long?: boolean;
}

export function run(context: CommandContext, input: CommandInput): Promise<ExitCode> {
  const { pattern, tags, limit = Number.POSITIVE_INFINITY, long = false } = input.options as Options;
  const { out, stop, interrupt } = context;
  const filter: EntryFilter = { ...(pattern && { pattern }), ...(tags && { tags }) };
  const textOf = long ? (entry: EntryInfo) => longLine(out, entry) : plainLine;
  const work = async (session: Session): Promise<ExitCode> => {
    let listed = 0;
    if (long && out.isTerminal && !out.json) await out.line(out.data.dim(LONG_HEAD));
    for await (const batch of scanEntries(session, filter, stop)) {
      for (const entry of batch.slice(0, limit - listed)) {
        if (out.json) await out.jsonLine(entryRow(entry));
        else await out.line(textOf(entry));
        listed++;
      }
      // Do not hold back a small batch: the next one may take long.
      await out.flush();
      if (listed >= limit) break;
    }
    if (interrupt.isRaised) {
      out.say(`interrupted after ${counted(listed, "key")}; there may be more`);
      return EXIT.interrupted;
    }
    if (out.isTerminal) out.note(summary(listed, limit, filter));
    return EXIT.ok;
  };
  return withSession(context, work, { reportsProgress: true });
}

const plainLine = ({ key }: EntryInfo): string => escapeControls(key);

/** Fixed widths, since later rows are not known yet. */
const WIDTHS = { ttl: 8, size: 10, age: 8 } as const;
const LONG_HEAD = `${"TTL".padStart(WIDTHS.ttl)}  ${"SIZE".padStart(WIDTHS.size)}  ${"AGE".padStart(WIDTHS.age)}  KEY  TAGS`;

function longLine({ data }: Output, { key, ttl, bytes, age, tags }: EntryInfo): string {
  const cells = [
    padStart(durationText(ttl), WIDTHS.ttl),
    padStart(bytesText(bytes), WIDTHS.size),
    padStart(durationText(age), WIDTHS.age),
    padEnd(escapeControls(key), 0),
  ];
  const named = tags.map((tag) => data.cyan(`#${escapeControls(tag)}`));
  return [...cells, ...(named.length > 0 ? [named.join(" ")] : [])].join("  ");
}

function summary(listed: number, limit: number, filter: EntryFilter): string {
  if (listed >= limit) return `the first ${counted(listed, "key")}; there may be more`;
  if (listed > 0 || (filter.pattern === undefined && filter.tags === undefined))
    return counted(listed, "key");
  return "no keys match; `xcache search` finds similar keys";
}
