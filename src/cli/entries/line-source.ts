// Lines of a file or of the standard input, one at a time.
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { CommandError } from "../command-error.ts";
import type { CommandContext } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { escapeControls } from "../terminal/escape.ts";

export interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
}

export interface LineSource extends AsyncIterable<Line> {
  /** Bytes in all; undefined where that is not known. */
  readonly bytes: number | undefined;
  /** Bytes read so far. */
  readonly read: () => number;
}

/** `-` is the standard input. Empty lines are left out. Throws CommandError for a file that cannot be read. */
export async function openLines({ stdin, stop }: CommandContext, file: string): Promise<LineSource> {
  const { input, bytes } = file === "-" ? { input: stdin, bytes: undefined } : await openFile(file);
  async function* lines(): AsyncIterable<Line> {
    const each = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY, signal: stop });
    let number = 0;
    try {
      for await (const text of each) {
        number++;
        if (text !== "") yield { text: number === 1 ? text.replace(/^\ufeff/, "") : text, number };
      }
    } finally {
      each.close();
      input.destroy();
    }
  }
  return {
    bytes,
    read: () => ("bytesRead" in input ? input.bytesRead : 0),
    [Symbol.asyncIterator]: () => lines()[Symbol.asyncIterator](),
  };
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EACCES: "permission denied",
  EISDIR: "it is a folder",
};

/** Opened before anything else is done: that a file cannot be read is found out at once. */
async function openFile(file: string) {
  try {
    const handle = await open(file);
    // Not by node:fs: once that has looked at a pipe, Node resolves no symbolic link and finds no package for a while.
    const facts = await handle.stat();
    if (facts.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
    // A pipe has a name too, as in <(zcat backup.gz), but no size.
    return { input: handle.createReadStream(), bytes: facts.isFile() ? facts.size : undefined };
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, error: unknown): CommandError {
  const code = String((error as NodeJS.ErrnoException).code);
  return new CommandError(
    `cannot read ${escapeControls(file)}: ${REASONS[code] ?? code}`,
    "Name a file with one JSON object a line, or - for the standard input.",
    EXIT.usage,
  );
}
