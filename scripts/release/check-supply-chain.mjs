// `npm run check:supply-chain`: sound lock files, and no known vulnerability in what is installed at run time. With
// --strict an audit that the registry does not answer is a failure too.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lockProblems, runtimePackages } from "./lock-file.mjs";
import { npmEnvironment } from "./npm-environment.mjs";
import { inPublishedFolder } from "./published-folder.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** How many vulnerabilities the registry lists for the runtime dependencies; undefined when it did not answer. */
function audit() {
  const args = ["audit", "--omit=dev", "--json", "--loglevel=silent"];
  const { stdout } = inPublishedFolder(ROOT, (cwd) =>
    spawnSync("npm", args, { cwd, encoding: "utf8", env: npmEnvironment() }),
  );
  /** @type {{ metadata?: { vulnerabilities: { total: number } }, message?: string }} */
  const answer = JSON.parse(stdout || "{}");
  return { count: answer.metadata?.vulnerabilities.total, said: answer.message ?? "no answer" };
}

/** @param {string} path */
const readLock = (path) => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"));

const LOCKS = ["package-lock.json", "bench/package-lock.json"];
const problems = LOCKS.flatMap((path) =>
  lockProblems(readLock(path)).map((problem) => `${path}: ${problem}`),
);
for (const problem of problems) console.log(problem);
if (problems.length === 0) {
  const places = Object.keys(runtimePackages(readLock("package-lock.json")));
  const names = places.map((place) => place.replace("node_modules/", ""));
  console.log(`lock files: ok; at run time ${names.join(", ")}, none with an install script`);
}

const { count, said } = audit();
if (count === undefined) console.log(`npm audit --omit=dev: no answer from the registry (${said})`);
else console.log(`npm audit --omit=dev: ${count} known vulnerabilities`);
const isAudited = count === 0 || (count === undefined && !process.argv.includes("--strict"));
process.exitCode = problems.length === 0 && isAudited ? 0 : 1;
