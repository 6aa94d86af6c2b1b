// Feature sets, the optional peer packages each needs, and which of them are installed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const MONITORING = ["@prometheus-io/client", "@opentelemetry/api", "nodemailer"];

/** Package names from peerDependencies; npm has no extras. An empty list: xcache itself is enough. */
export const EXTRAS = {
  full: [...MONITORING, "lmdb", "usearch"],
  vector: ["usearch"],
  monitoring: MONITORING,
  memcached: [],
  fuzzy: [],
  web: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ExtraName = keyof typeof EXTRAS;

export const EXTRA_NAMES = Object.keys(EXTRAS) as readonly ExtraName[];

const require = createRequire(import.meta.url);

/** Undefined: not installed. Searches where an import would, since not every package exports its package.json. */
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
