// The id that `next build` gave what this server runs: pages refer to files of their own build.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const known = new Map<string, string>();

/** `development` where there is no build. */
export function buildIdOf(serverDistDir: string | undefined): string {
  if (serverDistDir === undefined) return "development";
  let id = known.get(serverDistDir);
  if (id === undefined) {
    id = readBuildId(join(serverDistDir, "..", "BUILD_ID"));
    if (id === undefined) return "development";
    known.set(serverDistDir, id);
  }
  return id;
}

function readBuildId(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
