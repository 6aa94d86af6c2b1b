// The care that every command takes before it removes many entries: count, ask, remove, tell.

import type { CommandContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { counted } from "../terminal/format-number.ts";
import { confirm, requireSomebody } from "./confirm.ts";

export interface Removal {
  /** What would go, in words: `with the tag "users"`. */
  readonly what: string;
  /** In JSON. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly isDryRun: boolean;
  readonly isConfirmed: boolean;
  /** How many entries would go; undefined where that is not known. `isAbout`: an estimate. */
  count(): Promise<{ readonly entries: number | undefined; readonly isAbout?: boolean }>;
  /** `entries`: how many went, where that is known. `isPart`: Ctrl-C came before the last of them. */
  remove(): Promise<{ readonly entries: number | undefined; readonly isPart?: boolean }>;
}

export async function removeWithCare(context: CommandContext, removal: Removal): Promise<ExitCode> {
  const { out, interrupt, stdin } = context;
  const { what, facts, isDryRun, isConfirmed } = removal;
  // Before the store is looked through for nothing.
  if (!isDryRun && !isConfirmed) requireSomebody(stdin.isTTY === true && out.stderr.isTTY === true);
  const { entries, isAbout = false } = await removal.count();
  if (interrupt.isRaised) {
    out.say(`interrupted after counting ${entriesText(entries, isAbout)} ${what}; nothing was removed`);
    return EXIT.interrupted;
  }
  const amount = entriesText(entries, isAbout);
  const tell = async (text: string, removed: number | null, complete = true): Promise<void> => {
    const matched = entries ?? null;
    const row = { ...facts, matched, approximate: isAbout, removed, dry_run: isDryRun, complete };
    await (out.json ? out.jsonLine(row) : out.line(text));
  };
  if (isDryRun) {
    await tell(`would remove ${amount} ${what}`, 0);
    return EXIT.ok;
  }
  if (!isConfirmed && !(await confirm(context, `Remove ${amount} ${what}?`))) {
    out.say("nothing was removed");
    return interrupt.isRaised ? EXIT.interrupted : EXIT.failed;
  }
  const { entries: removed, isPart = false } = await removal.remove();
  const went = removed === undefined ? amount : entriesText(removed, false);
  const end = isPart ? "; interrupted, there may be more" : "";
  await tell(`removed ${went} ${what}${end}`, removed ?? (isAbout ? null : (entries ?? null)), !isPart);
  return isPart ? EXIT.interrupted : EXIT.ok;
}

function entriesText(entries: number | undefined, isAbout: boolean): string {
  if (entries === undefined) return "all entries";
  return `${isAbout ? "about " : ""}${counted(entries, "entry", "entries")}`;
}
