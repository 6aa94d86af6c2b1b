// Reads the lines of a file or of stdin, one at a time.
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { CommandContext } from "../command-spec.ts";
import { CommandError, EXIT } from "../exit-code.ts";
import { escapeControls } from "../terminal/escape.ts";

export interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
}

export interface LineSource extends AsyncIterable<Line> {
  /** Total bytes; undefined if unknown. */
  readonly bytes: number | undefined;
  /** Bytes read so far. */
  readonly read: () => number;
}

/** `-` is stdin. Empty lines are skipped. Throws CommandError for a file that cannot be read. */
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
  EISDIR: "it is a directory",
};

/** Opened before anything else, so that an unreadable file is reported at once. */
async function openFile(file: string) {
  try {
    const handle = await open(file);
    // Not statSync of node:fs: after it has examined a pipe, Node fails to resolve symbolic links and packages for a while.
    const stats = await handle.stat();
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
    // A named pipe, as in <(zcat backup.gz), has no size.
    return { input: handle.createReadStream(), bytes: stats.isFile() ? stats.size : undefined };
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, error: unknown): CommandError {
  const code = String((error as NodeJS.ErrnoException).code);
  return new CommandError(
    `cannot read ${escapeControls(file)}: ${REASONS[code] ?? code}`,
    "Name a file with one JSON object per line, or - for stdin.",
    EXIT.usage,
  );
}
