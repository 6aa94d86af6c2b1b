// Asks before something is removed for good.
import { createInterface } from "node:readline/promises";
import { CommandError } from "../command-error.ts";
import type { CommandContext } from "../context.ts";

/** Throws where nobody can be asked. A Ctrl-C or an end of input is a no. */
export async function confirm({ out, stdin, interrupt }: CommandContext, question: string): Promise<boolean> {
  requireSomebody(stdin.isTTY === true && out.stderr.isTTY === true);
  const lines = createInterface({ input: stdin, output: out.stderr as NodeJS.WriteStream, terminal: true });
  const gone = new AbortController();
  lines.once("SIGINT", () => {
    interrupt.raise();
    gone.abort();
  });
  lines.once("close", () => gone.abort());
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: gone.signal });
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch {
    out.stderr.write("\n");
    return false;
  } finally {
    lines.close();
  }
}

export function requireSomebody(isThere: boolean): void {
  if (isThere) return;
  throw new CommandError(
    "this removes entries, and nobody can be asked whether to",
    "Pass --yes to do it, or --dry-run to see what would go.",
  );
}
