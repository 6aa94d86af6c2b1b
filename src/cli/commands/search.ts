// xcache search: keys similar to a text, best matches first.
import { type FuzzyMatch, fuzzySearch } from "../../search/fuzzy.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { scanEntries } from "../entries/entry-scan.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { padStart } from "../terminal/display-width.ts";
import { escapeControls } from "../terminal/escape.ts";
import type { Output } from "../terminal/output.ts";

export function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { out, stop, interrupt } = context;
  const text = args[0] ?? "";
  const given = options as { threshold?: number; limit?: number };
  const { threshold = defaultThreshold(text), limit = 10 } = given;
  const work = async (session: Session): Promise<ExitCode> => {
    // Not through the cache object, which discards its results when interrupted.
    const matches = await fuzzySearch(keyBatches(session, stop), text, { threshold, limit });
    for (const match of matches) {
      if (out.json) await out.jsonLine({ key: match.key, score: match.score });
      else await out.line(`${padStart(String(match.score), 3)}  ${highlighted(out, match)}`);
    }
    await out.flush();
    if (interrupt.isRaised) {
      out.say("interrupted; these are the best matches so far");
      return EXIT.interrupted;
    }
    if (matches.length === 0) out.note(`no key scores ${threshold} or more; try a lower --threshold`);
    return EXIT.ok;
  };
  return withSession(context, work, { reportsProgress: true });
}

/** 80, or what lets a short text have one typo: at 80 it would have to be exact. */
function defaultThreshold(text: string): number {
  const { length } = [...text.replaceAll(/\s/g, "")];
  return length === 3 || length === 4 ? Math.floor((100 * (length - 1)) / length) : 80;
}

async function* keyBatches(session: Session, stop: AbortSignal): AsyncIterable<readonly string[]> {
  for await (const batch of scanEntries(session, {}, stop)) yield batch.map(({ key }) => key);
}

/** The key with the match underlined. */
function highlighted({ data }: Output, { key, range: [start, end] }: FuzzyMatch): string {
  const part = (from: number, to?: number): string => escapeControls(key.slice(from, to));
  return `${part(0, start)}${start < end ? data.underline(part(start, end)) : ""}${part(end)}`;
}
