// Which of the optional packages are installed next to us.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);

/** Undefined: not installed. Looked for as an import of ours would; not every package exports its package.json. */
export function installedVersion(name: string): string | undefined {
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8"));
      return (manifest as { version?: string }).version ?? "unknown";
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}
