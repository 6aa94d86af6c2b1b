// Asks for confirmation before entries are removed.
import { createInterface } from "node:readline/promises";
import type { CommandContext } from "../command-spec.ts";
import { CommandError } from "../exit-code.ts";

/** Throws CommandError without a terminal. Ctrl-C and end of input mean no. */
export async function confirm({ out, stdin, interrupt }: CommandContext, question: string): Promise<boolean> {
  requireTerminal(stdin.isTTY === true && out.stderr.isTTY === true);
  const lines = createInterface({ input: stdin, output: out.stderr as NodeJS.WriteStream, terminal: true });
  const aborted = new AbortController();
  lines.once("SIGINT", () => {
    interrupt.raise();
    aborted.abort();
  });
  lines.once("close", () => aborted.abort());
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: aborted.signal });
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch {
    out.stderr.write("\n");
    return false;
  } finally {
    lines.close();
  }
}

export function requireTerminal(isInteractive: boolean): void {
  if (isInteractive) return;
  throw new CommandError(
    "refusing to delete entries: stdin is not a terminal, so there is no one to confirm",
    "Pass --yes to delete them, or --dry-run to count them.",
  );
}
