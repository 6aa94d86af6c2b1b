// Stores the entries of a file in batches and shows the progress.
import { systemClock } from "../../core/clock.ts";
import type { CommandContext } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { durationText } from "../terminal/format-duration.ts";
import { counted, countText } from "../terminal/format-number.ts";
import { Progress } from "../terminal/progress.ts";
import { type LineEntry, readEntryLine } from "./entry-line.ts";
import { openLines } from "./line-source.ts";

/** Lines stored at once. */
const BATCH_SIZE = 200;

export interface ImportOptions {
  /** Changes an entry before it is stored. */
  readonly prepare?: (entry: LineEntry) => LineEntry;
  /** Keep entries that already exist. */
  readonly onlyAbsent: boolean;
}

interface Tally {
  read: number;
  stored: number;
  present: number;
  expired: number;
  /** Every line up to this one has been processed. */
  line: number;
}

export async function importFile(
  context: CommandContext,
  file: string,
  { prepare = (entry) => entry, onlyAbsent }: ImportOptions,
): Promise<ExitCode> {
  const { out, interrupt, stop } = context;
  const lines = await openLines(context, file);
  const tally: Tally = { read: 0, stored: 0, present: 0, expired: 0, line: 0 };
  const work = async (session: Session): Promise<ExitCode> => {
    const progress = new Progress(out, session.clock);
    const now = (): number => systemClock.wall?.() ?? systemClock.now();
    let batch: LineEntry[] = [];
    let line = 0;
    const store = async (): Promise<void> => {
      const [entries, last] = [batch, line];
      batch = [];
      await storeBatch(session, entries, onlyAbsent, tally);
      tally.line = last;
      progress.update(
        tally.read,
        lines.bytes === undefined ? undefined : lines.read() / Math.max(1, lines.bytes),
      );
    };
    try {
      for await (const each of lines) {
        batch.push(prepare(readEntryLine(each, file, now())));
        line = each.number;
        if (batch.length >= BATCH_SIZE) await store();
        if (stop.aborted) break;
      }
      await store();
    } catch (error) {
      // A bad line does not discard the lines before it; a failed batch is not retried.
      if (batch.length > 0) await store().catch(() => {});
      const ending = interrupt.isRaised ? "interrupted" : "failed";
      await report(context, tally, progress.end(), { onlyAbsent, ending });
      throw error;
    }
    const ending = interrupt.isRaised ? "interrupted" : "complete";
    await report(context, tally, progress.end(), { onlyAbsent, ending });
    return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
  };
  return withSession(context, work, { reportsProgress: true });
}

/** Counts what was stored even if some entries failed; throws the first error. */
async function storeBatch(
  { cache }: Session,
  entries: readonly LineEntry[],
  onlyAbsent: boolean,
  tally: Tally,
): Promise<void> {
  const alive = entries.filter(({ ttl }) => ttl === undefined || ttl >= 0.001);
  const present = onlyAbsent
    ? await Promise.all(alive.map(async ({ key }) => cache.exists(key)))
    : alive.map(() => false);
  const wanted = alive.filter((_, at) => !present[at]);
  const stored = await Promise.allSettled(
    wanted.map(({ key, value, ttl, tags }) =>
      cache.set(key, value, { ...(ttl !== undefined && { ttl }), tags }),
    ),
  );
  const failures = stored.filter(({ status }) => status === "rejected");
  tally.read += entries.length - failures.length;
  tally.expired += entries.length - alive.length;
  tally.present += alive.length - wanted.length;
  tally.stored += wanted.length - failures.length;
  const [failure] = failures;
  if (failure !== undefined) throw (failure as PromiseRejectedResult).reason;
}

interface Outcome {
  readonly onlyAbsent: boolean;
  readonly ending: "complete" | "interrupted" | "failed";
}

async function report(
  { out }: CommandContext,
  { read, stored, present, expired, line }: Tally,
  seconds: number,
  { onlyAbsent, ending }: Outcome,
): Promise<void> {
  if (out.json) {
    await out.jsonLine({
      read,
      stored,
      present,
      expired,
      last_line: line,
      duration_seconds: Math.round(seconds * 1_000) / 1_000,
      complete: ending === "complete",
    });
    return;
  }
  const rest = [
    ...(onlyAbsent ? [`${countText(present)} already existed`] : []),
    ...(expired > 0 ? [`${countText(expired)} expired`] : []),
    ...(ending === "complete" ? [] : [`${ending} after line ${countText(line)}`]),
  ];
  const text = [`stored ${counted(stored, "entry", "entries")} in ${durationText(seconds)}`, ...rest];
  if (ending === "failed") out.say(text.join(", "));
  else await out.line(text.join(", "));
}
