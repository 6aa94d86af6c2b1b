// Stores the entries of a file, a batch at a time, and shows how far it is.
import { systemClock } from "../core/clock.ts";
import { counted, countText } from "./amount.ts";
import type { CommandContext } from "./context.ts";
import { durationText } from "./duration.ts";
import { type LineEntry, readEntryLine } from "./entry-line.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { openLines } from "./line-source.ts";
import { Progress } from "./progress.ts";
import { type Session, withSession } from "./session.ts";

/** Lines that are stored at once. */
const TOGETHER = 200;

export interface EntryFileOptions {
  /** Changes an entry before it is stored. */
  readonly prepare?: (entry: LineEntry) => LineEntry;
  /** Leave entries alone that are there already. */
  readonly onlyAbsent: boolean;
}

interface Tally {
  read: number;
  stored: number;
  present: number;
  expired: number;
}

export async function storeEntryFile(
  context: CommandContext,
  file: string,
  { prepare = (entry) => entry, onlyAbsent }: EntryFileOptions,
): Promise<ExitCode> {
  const { out, interrupt, stop } = context;
  const lines = await openLines(context, file);
  const tally: Tally = { read: 0, stored: 0, present: 0, expired: 0 };
  return withSession(context, async (session) => {
    const progress = new Progress(out, session.clock);
    const now = (): number => systemClock.wall?.() ?? systemClock.now();
    let batch: LineEntry[] = [];
    const store = async (): Promise<void> => {
      const entries = batch;
      batch = [];
      await storeBatch(session, entries, onlyAbsent, tally);
      progress.update(
        tally.read,
        lines.bytes === undefined ? undefined : lines.read() / Math.max(1, lines.bytes),
      );
    };
    try {
      for await (const line of lines) {
        batch.push(prepare(readEntryLine(line, file, now())));
        if (batch.length >= TOGETHER) await store();
        if (stop.aborted) break;
      }
      await store();
    } catch (error) {
      progress.end();
      await store().catch(() => {});
      out.say(`${counted(tally.stored, "entry", "entries")} stored before it failed`);
      throw error;
    }
    const seconds = progress.end();
    await tell(context, tally, seconds, onlyAbsent);
    return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
  });
}

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
  await Promise.all(
    wanted.map(({ key, value, ttl, tags }) =>
      cache.set(key, value, { ...(ttl !== undefined && { ttl }), tags }),
    ),
  );
  tally.read += entries.length;
  tally.expired += entries.length - alive.length;
  tally.present += alive.length - wanted.length;
  tally.stored += wanted.length;
}

async function tell(
  { out, interrupt }: CommandContext,
  tally: Tally,
  seconds: number,
  onlyAbsent: boolean,
): Promise<void> {
  const { read, stored, present, expired } = tally;
  if (out.json) {
    const duration = Math.round(seconds * 1_000) / 1_000;
    await out.jsonLine({
      read,
      stored,
      present,
      expired,
      duration_seconds: duration,
      complete: !interrupt.isRaised,
    });
    return;
  }
  const rest = [
    ...(onlyAbsent ? [`${countText(present)} there already`] : []),
    ...(expired > 0 ? [`${countText(expired)} expired`] : []),
    ...(interrupt.isRaised ? ["interrupted: the file was not read to its end"] : []),
  ];
  const took = `in ${durationText(seconds)}`;
  await out.line([`stored ${counted(stored, "entry", "entries")} ${took}`, ...rest].join(", "));
}
