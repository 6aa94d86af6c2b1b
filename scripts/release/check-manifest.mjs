// `node scripts/release/check-manifest.mjs`: refuses to publish a package.json whose owner was never filled in.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The placeholder for the owner. */
const PLACEHOLDER = "OWNER";
const FIELDS = ["author", "homepage", "bugs", "repository"];

/**
 * What prevents a package from being published, one line each; empty when all is well.
 * @param {Readonly<Record<string, unknown>>} manifest
 */
export function manifestProblems(manifest) {
  return FIELDS.flatMap((field) => {
    const text = JSON.stringify(manifest[field] ?? "");
    if (text === '""') return [`${field} is missing from package.json`];
    return text.includes(PLACEHOLDER)
      ? [`${field} still has the placeholder ${PLACEHOLDER}: fill it in before a release`]
      : [];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const problems = manifestProblems(JSON.parse(manifest));
  for (const problem of problems) console.log(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
