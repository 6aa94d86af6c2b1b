// The optional peer packages: the oldest version of each that works, and the version that is installed.
import { nodeFs, nodePath, packageRequire } from "./lazy-builtin.ts";

/**
 * package.json accepts any version of these, so that installing xcache never conflicts with an application that has one for
 * other reasons; the feature that uses a package checks its version instead.
 */
export const OLDEST_SUPPORTED: Readonly<Record<string, string>> = {
  "@apollo/utils.keyvaluecache": "2.0.0",
  "@nestjs/common": "10.0.0",
  "@opentelemetry/api": "1.3.0",
  "@prisma/adapter-libsql": "6.6.0",
  "@prisma/adapter-mariadb": "7.0.0",
  "@prisma/adapter-pg": "6.6.0",
  "@prisma/client": "6.6.0",
  "@prometheus-io/client": "0.16.0",
  "drizzle-orm": "0.36.0",
  express: "4.17.0",
  fastify: "4.0.0",
  hono: "4.0.0",
  keyv: "4.5.0",
  knex: "3.0.0",
  koa: "2.0.0",
  kysely: "0.27.0",
  "libpg-query": "17.2.0",
  lmdb: "3.0.0",
  mysql2: "3.0.0",
  next: "15.0.0",
  nodemailer: "6.0.0",
  pg: "8.0.0",
  postgres: "3.4.0",
  "prom-client": "14.0.0",
  rxjs: "7.0.0",
  typeorm: "0.3.0",
  unstorage: "1.10.0",
  usearch: "2.25.0",
};

/** Undefined: not installed. Searches where an import would, since not every package exports its package.json. */
export function installedVersion(name: string, require = packageRequire()): string | undefined {
  const folders = (require.resolve.paths(name) ?? []).map((folder) => nodePath().join(folder, name));
  return (
    firstOf(folders, (folder) => versionIn(folder)) ??
    // Plug'n'Play has no such folders, but resolves what a package exports.
    firstOf(["/package.json", ""], (exported) => {
      const file = attempt(() => require.resolve(`${name}${exported}`));
      return file && firstOf(foldersAbove(file), (folder) => versionIn(folder, name));
    })
  );
}

function versionIn(folder: string, named?: string): string | undefined {
  const { name, version = "unknown" } =
    attempt(
      () => JSON.parse(nodeFs().readFileSync(nodePath().join(folder, "package.json"), "utf8")) as Manifest,
    ) ?? {};
  return name === undefined || (named !== undefined && name !== named) ? undefined : version;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
}

function foldersAbove(file: string): readonly string[] {
  const folder = nodePath().dirname(file);
  return folder === file ? [] : [folder, ...foldersAbove(folder)];
}

function firstOf<Part, Found>(
  parts: readonly Part[],
  find: (part: Part) => Found | undefined,
): Found | undefined {
  for (const part of parts) {
    const found = find(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Whether a version such as `6.10.1` or `16.0.0-canary.3` is older than another; one that cannot be read is not. */
export function isOlder(version: string, than: string): boolean {
  const [left, right] = [numbersOf(version), numbersOf(than)];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at >= 0 && left[at]! < right[at]!;
}

/** A prerelease counts as its release. */
const numbersOf = (version: string): readonly number[] =>
  (/^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);
