// xcache export: writes entries with their values, tags and expiry to a file.

import type { EntryInfo } from "../../cache/entry-pages.ts";
import { systemClock } from "../../core/clock.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { entryLine } from "../entries/entry-line.ts";
import { type EntryFilter, scanEntries } from "../entries/entry-scan.ts";
import { type ExportTarget, openTarget } from "../entries/export-target.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";
import { type Session, withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";
import { durationText } from "../terminal/format-duration.ts";
import { counted } from "../terminal/format-number.ts";
import { Progress } from "../terminal/progress.ts";

/** Values held in memory at once. */
const BATCH_SIZE = 100;

interface Options {
  readonly pattern?: string;
  readonly tags?: readonly string[];
  readonly force?: boolean;
}

export function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { pattern, tags, force = false } = options as Options;
  const file = args[0] ?? "-";
  const filter: EntryFilter = { ...(pattern && { pattern }), ...(tags && { tags }) };
  const work = async (session: Session): Promise<ExitCode> => {
    const target = await openTarget(context.out, file, force);
    return new Export(context, session, target, file).run(filter);
  };
  return withSession(context, work, { reportsProgress: true });
}

class Export {
  readonly #context: CommandContext;
  readonly #session: Session;
  readonly #target: ExportTarget;
  readonly #file: string;
  readonly #progress: Progress;
  #written = 0;

  constructor(context: CommandContext, session: Session, target: ExportTarget, file: string) {
    this.#context = context;
    this.#session = session;
    this.#target = target;
    this.#file = file;
    this.#progress = new Progress(context.out, session.clock);
  }

  async run(filter: EntryFilter): Promise<ExitCode> {
    try {
      await this.#writeAll(filter);
    } catch (error) {
      await this.#abandon("failed");
      throw error;
    }
    if (this.#context.interrupt.isRaised) {
      await this.#abandon("interrupted");
      return EXIT.interrupted;
    }
    await this.#finish();
    return EXIT.ok;
  }

  async #writeAll(filter: EntryFilter): Promise<void> {
    const { stop } = this.#context;
    const isAll = Object.keys(filter).length === 0;
    const usage = isAll ? await unlessStopped(this.#usage(), stop) : undefined;
    for await (const batch of scanEntries(this.#session, filter, stop)) {
      for (let at = 0; at < batch.length && !stop.aborted; at += BATCH_SIZE) {
        await this.#write(batch.slice(at, at + BATCH_SIZE));
        this.#progress.update(
          this.#written,
          usage === undefined ? undefined : this.#written / Math.max(1, usage.keys),
        );
      }
    }
  }

  async #usage(): Promise<{ readonly keys: number }> {
    return this.#session.namespace.usage(false);
  }

  /** Skips entries that have disappeared since the scan. */
  async #write(entries: readonly EntryInfo[]): Promise<void> {
    const keys = entries.map(({ key }) => key);
    const values = await unlessStopped(this.#session.cache.getMany(keys), this.#context.stop);
    const now = systemClock.wall?.() ?? systemClock.now();
    for (const entry of entries) {
      if (values?.has(entry.key) !== true) continue;
      await this.#target.line(entryLine(entry, values.get(entry.key), now));
      this.#written++;
    }
  }

  async #finish(): Promise<void> {
    const { out } = this.#context;
    const seconds = this.#progress.end();
    await this.#target.finish();
    // stdout carries nothing but the entries.
    if (this.#file === "-") return;
    if (out.json) await this.#printJson(this.#file, seconds, true);
    else
      await out.line(
        `wrote ${counted(this.#written, "entry", "entries")} to ${escapeControls(this.#file)} in ${durationText(seconds)}`,
      );
  }

  /** Reports where the entries written so far are. */
  async #abandon(reason: "failed" | "interrupted"): Promise<void> {
    const { out } = this.#context;
    const seconds = this.#progress.end();
    const left = await this.#target.abandon().catch(() => undefined);
    if (out.json && this.#file !== "-") await this.#printJson(left ?? null, seconds, false);
    if (out.json) return;
    const where = left === undefined ? "" : `; they are in ${escapeControls(left)}`;
    out.say(`${reason} after ${counted(this.#written, "entry", "entries")}${where}`);
  }

  #printJson(file: string | null, seconds: number, complete: boolean): Promise<void> {
    const duration = Math.round(seconds * 1_000) / 1_000;
    return this.#context.out.jsonLine({
      file,
      exported: this.#written,
      duration_seconds: duration,
      complete,
    });
  }
}
