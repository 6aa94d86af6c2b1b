// How every command removes many entries: count, confirm, remove, report.
import type { CommandContext } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { counted } from "../terminal/format-number.ts";
import { confirm, requireTerminal } from "./confirm.ts";

export interface Removal {
  /** Which entries, in words: `with the tag "users"`. */
  readonly what: string;
  /** The same for JSON output. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly isDryRun: boolean;
  readonly isConfirmed: boolean;
  /** How many entries would be removed; undefined if unknown. */
  count(): Promise<{ readonly entries: number | undefined; readonly isEstimate?: boolean }>;
  /** `entries`: how many were removed, if known. `isPartial`: Ctrl-C stopped it early. */
  remove(): Promise<{ readonly entries: number | undefined; readonly isPartial?: boolean }>;
}

export async function confirmAndRemove(context: CommandContext, removal: Removal): Promise<ExitCode> {
  const { out, interrupt, stdin } = context;
  const { what, facts, isDryRun, isConfirmed } = removal;
  // Before the scan, which would be in vain.
  if (!isDryRun && !isConfirmed) requireTerminal(stdin.isTTY === true && out.stderr.isTTY === true);
  const { entries, isEstimate = false } = await removal.count();
  if (interrupt.isRaised) {
    out.say(`interrupted after counting ${entriesText(entries, isEstimate)} ${what}; nothing was removed`);
    return EXIT.interrupted;
  }
  const amount = entriesText(entries, isEstimate);
  const report = async (text: string, removed: number | null, complete = true): Promise<void> => {
    const matched = entries ?? null;
    const row = { ...facts, matched, approximate: isEstimate, removed, dry_run: isDryRun, complete };
    await (out.json ? out.jsonLine(row) : out.line(text));
  };
  if (isDryRun) {
    await report(`would remove ${amount} ${what}`, 0);
    return EXIT.ok;
  }
  if (!isConfirmed && !(await confirm(context, `Remove ${amount} ${what}?`))) {
    out.say("nothing was removed");
    return interrupt.isRaised ? EXIT.interrupted : EXIT.failed;
  }
  const { entries: removed, isPartial = false } = await removal.remove();
  const removedText = removed === undefined ? amount : entriesText(removed, false);
  const end = isPartial ? "; interrupted, some may remain" : "";
  await report(
    `removed ${removedText} ${what}${end}`,
    removed ?? (isEstimate ? null : (entries ?? null)),
    !isPartial,
  );
  return isPartial ? EXIT.interrupted : EXIT.ok;
}

function entriesText(entries: number | undefined, isEstimate: boolean): string {
  if (entries === undefined) return "all entries";
  return `${isEstimate ? "about " : ""}${counted(entries, "entry", "entries")}`;
}
