// What a store says of itself, so that no version reads what it does not understand.

import type { Committer } from "./committer.ts";
import { folderError } from "./disk-error.ts";
import type { Environment } from "./environment.ts";
import { AREA, inArea } from "./layout/disk-key.ts";
import { ChangeOperation } from "./operation.ts";

/** Another one whenever an older version would misread what a newer one has written. */
const FORMAT = 1;
const KEY = inArea(AREA.about, Buffer.from("format"));

/** Writes it into a store that is new. Throws ConnectionError for one of another version, or of something else. */
export async function checkFormat(
  { environment, committer }: { readonly environment: Environment; readonly committer: Committer },
  directory: string,
  limitMs: number,
): Promise<void> {
  const written = environment.read(KEY);
  if (written !== undefined) return requireFormat(written, directory);
  if (!environment.isEmpty) {
    throw folderError(directory, "what lies there was not written by xcache", {
      hint: "Use a folder of its own for the cache.",
    });
  }
  await new Promise<void>((resolve, reject) => {
    const value = Buffer.from(JSON.stringify({ format: FORMAT }));
    const change = {
      condition: { key: KEY, version: null },
      puts: [{ key: KEY, value, version: 0 }],
      removals: [],
    };
    committer.add(new ChangeOperation(undefined, change, () => resolve(), reject), limitMs);
  });
  const present = environment.read(KEY);
  if (present !== undefined) requireFormat(present, directory);
}

function requireFormat(written: Buffer, directory: string): void {
  const format = formatIn(written);
  if (format === FORMAT) return;
  throw folderError(
    directory,
    `its format is version ${String(format)}; this version of xcache reads version ${FORMAT}`,
    {
      hint: "Use the same version of xcache in every process on it, or another folder.",
    },
  );
}

function formatIn(written: Buffer): unknown {
  try {
    return (JSON.parse(written.toString("utf8")) as { format?: unknown }).format;
  } catch {
    return "unknown";
  }
}
