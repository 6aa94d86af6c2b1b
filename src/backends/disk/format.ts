// The format version of a store, so that no version of xcache misreads what another has written.

import type { Committer } from "./committer.ts";
import { folderError } from "./disk-error.ts";
import type { Environment } from "./environment.ts";
import { AREA, inArea } from "./layout/disk-key.ts";
import { ChangeOperation } from "./operation.ts";

/** Raise it whenever an older version would misread what a newer one writes. */
const FORMAT = 2;
const KEY = inArea(AREA.about, Buffer.from("format"));

/** Writes the version into a new store. Throws ConnectionError for another version or another application's data. */
export async function checkFormat(
  { environment, committer }: { readonly environment: Environment; readonly committer: Committer },
  directory: string,
  limitMs: number,
): Promise<void> {
  const written = environment.read(KEY);
  if (written !== undefined) return requireFormat(written, directory);
  if (!environment.isEmpty) {
    throw folderError(directory, "its data was not written by xcache", {
      hint: "Use a separate folder for the cache.",
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
      hint: "Use the same version of xcache in every process that uses it, or another folder.",
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
