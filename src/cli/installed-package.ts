// What package.json says of the optional packages, and which of them are installed next to us.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

interface Manifest {
  readonly version?: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const require = createRequire(import.meta.url);

/** Optional packages with the versions that fit. */
export function peerRanges(): Readonly<Record<string, string>> {
  const manifest = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  ) as Manifest;
  return manifest.peerDependencies ?? {};
}

/** Undefined: not installed. Looked for as an import of ours would; not every package exports its package.json. */
export function installedVersion(name: string): string | undefined {
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      const manifest = JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8")) as Manifest;
      return manifest.version ?? "unknown";
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}
