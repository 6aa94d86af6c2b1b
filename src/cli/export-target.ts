// Where an export goes: the standard output, or a file that takes its name only once it is whole.
import { once } from "node:events";
import { createWriteStream, existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { CommandError } from "./command-error.ts";
import type { Output } from "./output.ts";
import { visible } from "./visible-text.ts";

export interface ExportTarget {
  line(text: string): Promise<void>;
  /** Everything was written. */
  finish(): Promise<void>;
  /** Leaves what there is. Returns its name; undefined for the standard output. */
  leave(): Promise<string | undefined>;
}

export function openTarget(out: Output, file: string, replaces: boolean): ExportTarget {
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
  if (!replaces && existsSync(file)) {
    throw new CommandError(
      `${visible(file)} is there already`,
      "Choose another name, or pass --force to replace it.",
    );
  }
  return openFile(file);
}

/** Values may be nobody else's business: only the user may read it. */
function openFile(file: string): ExportTarget {
  const partial = `${file}.partial`;
  const stream = createWriteStream(partial, { mode: 0o600 });
  let failure: Error | undefined;
  stream.on("error", (error) => {
    failure = error;
  });
  const close = async (): Promise<void> => {
    stream.end();
    if (failure === undefined) await once(stream, "close");
    if (failure !== undefined) throw failure;
  };
  return {
    line: async (text) => {
      if (failure !== undefined) throw failure;
      if (!stream.write(`${text}\n`)) await once(stream, "drain");
    },
    finish: async () => {
      await close();
      await rename(partial, file);
    },
    leave: async () => {
      await close();
      return partial;
    },
  };
}
