// What the applications share: a failed check ends them, and the last line names the versions that were used.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);

/** @param {unknown} actual @param {unknown} expected @param {string} what */
export function check(actual, expected, what) {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: expected ${right}, got ${left}`);
}

/** The version of a package that the application has. */
export function versionOf(name) {
  for (let at = dirname(require.resolve(name)); at !== dirname(at); at = dirname(at)) {
    const manifest = tryRead(join(at, "package.json"));
    if (manifest?.name === name && manifest.version) return manifest.version;
  }
  return "unknown";
}

function tryRead(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** Prints what worked, and ends the process even where a library keeps it alive. */
export function works(...names) {
  console.log(names.map((name) => `${name} ${versionOf(name)}`).join(", "));
  process.exit();
}

/** Requests a page twice and checks that its handler ran once. */
export async function checkPage(port, runs) {
  const url = `http://127.0.0.1:${port}/page`;
  const bodies = [];
  for (let at = 0; at < 2; at++) bodies.push(await (await fetch(url)).text());
  check(bodies, ["page 1", "page 1"], "the response of two requests");
  check(runs(), 1, "runs of the handler");
}

/** Reads a user twice through a cached session, renames it and reads it again. */
export async function checkSession(cache, { read, rename }) {
  check([await read(), await read()], ["Ada", "Ada"], "two reads");
  const { totalHits } = await cache.getStats();
  check(totalHits > 0, true, "a read came from the cache");
  await rename("Grace");
  check(await read(), "Grace", "a read after the commit");
}
