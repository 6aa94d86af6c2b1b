// Where an export is written: stdout, or a file that gets its final name only once it is complete.
import { once } from "node:events";
import { createWriteStream, realpathSync, type Stats, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { CommandError } from "../exit-code.ts";
import { escapeControls } from "../terminal/escape.ts";
import type { Output } from "../terminal/output.ts";

export interface ExportTarget {
  line(text: string): Promise<void>;
  /** Call when everything was written. */
  finish(): Promise<void>;
  /** Keeps what was written. Returns the name of the partial file; undefined for stdout or if nothing was written. */
  abandon(): Promise<string | undefined>;
}

/** Resolves once the file is open. Throws CommandError rather than overwrite a file without --force. */
export async function openTarget(out: Output, file: string, force: boolean): Promise<ExportTarget> {
  if (file === "-") {
    return {
      line: (text) => out.line(text),
      finish: () => out.flush(),
      abandon: async () => {
        await out.flush();
        return undefined;
      },
    };
  }
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return openFile(file, force);
  requireReplaceable(file, stats, force);
  // Replace the target of a symbolic link, not the link.
  return openFile(realpathSync(file), force);
}

function requireReplaceable(file: string, stats: Stats, force: boolean): void {
  if (!stats.isFile()) {
    throw new CommandError(`${escapeControls(file)} is not a regular file`, "Name a file, or - for stdout.");
  }
  if (!force) throw alreadyExists(file);
}

const alreadyExists = (file: string): CommandError =>
  new CommandError(
    `${escapeControls(file)} already exists`,
    "Choose another name, or pass --force to replace it.",
  );

/**
 * Values may be private: only the user may read the file. It is always created exclusively, so that the partial file of
 * an interrupted export is not overwritten unasked and two exports never write to the same file.
 */
async function openFile(file: string, force: boolean): Promise<ExportTarget> {
  const partial = `${file}.partial`;
  if (force) await rm(partial, { force: true });
  const stream = createWriteStream(partial, { mode: 0o600, flags: "wx" });
  await once(stream, "open").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST" ? alreadyExists(partial) : error;
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
    abandon: async () => {
      await close();
      if (!isEmpty) return partial;
      await rm(partial, { force: true });
      return undefined;
    },
  };
}
