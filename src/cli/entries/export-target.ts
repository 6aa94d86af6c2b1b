// Where an export goes: the standard output, or a file that takes its name only once it is whole.
import { once } from "node:events";
import { createWriteStream, realpathSync, type Stats, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { CommandError } from "../command-error.ts";
import { escapeControls } from "../terminal/escape.ts";
import type { Output } from "../terminal/output.ts";

export interface ExportTarget {
  line(text: string): Promise<void>;
  /** Everything was written. */
  finish(): Promise<void>;
  /** Leaves what there is. Returns the name of the incomplete file; undefined for the standard output, and for none. */
  leave(): Promise<string | undefined>;
}

/** Waits until the file is open. Throws CommandError for one that would be lost. */
export async function openTarget(out: Output, file: string, replaces: boolean): Promise<ExportTarget> {
  if (file === "-") {
    return {
      line: (text) => out.line(text),
      finish: () => out.flush(),
      leave: async () => {
        await out.flush();
        return undefined;
      },
    };
  }
  const facts = statSync(file, { throwIfNoEntry: false });
  if (facts === undefined) return openFile(file, replaces);
  requireReplaceable(file, facts, replaces);
  // What a link points to is replaced, not the link.
  return openFile(realpathSync(file), replaces);
}

function requireReplaceable(file: string, facts: Stats, replaces: boolean): void {
  if (!facts.isFile()) {
    throw new CommandError(
      `${escapeControls(file)} is not a regular file`,
      "Name a file, or - for the standard output.",
    );
  }
  if (!replaces) throw isThere(file);
}

const isThere = (file: string): CommandError =>
  new CommandError(
    `${escapeControls(file)} is there already`,
    "Choose another name, or pass --force to replace it.",
  );

/**
 * Values may be nobody else's business: only the user may read it. The file is always a new one, so that neither the
 * rest of an interrupted export is lost unasked, nor do two exports write to the same.
 */
async function openFile(file: string, replaces: boolean): Promise<ExportTarget> {
  const partial = `${file}.partial`;
  if (replaces) await rm(partial, { force: true });
  const stream = createWriteStream(partial, { mode: 0o600, flags: "wx" });
  await once(stream, "open").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST" ? isThere(partial) : error;
  });
  let failure: Error | undefined;
  let isEmpty = true;
  stream.on("error", (error) => {
    failure = error;
  });
  const close = async (): Promise<void> => {
    stream.end();
    if (!stream.closed) await once(stream, "close").catch(() => {});
  };
  return {
    line: async (text) => {
      if (failure !== undefined) throw failure;
      isEmpty = false;
      if (!stream.write(`${text}\n`)) await once(stream, "drain");
    },
    finish: async () => {
      await close();
      if (failure !== undefined) throw failure;
      await rename(partial, file);
    },
    leave: async () => {
      await close();
      if (!isEmpty) return partial;
      await rm(partial, { force: true });
      return undefined;
    },
  };
}
