// `npm run check:supply-chain`: the lock file as it should be, and no known hole in what comes along at run time.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lockProblems, runtimePackages } from "./lock-file.mjs";
import { npmEnvironment } from "./npm-environment.mjs";
import { inPublishedFolder } from "./published-folder.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** How many holes the registry knows in what comes along; no number where it could not be asked. */
function audit() {
  const args = ["audit", "--omit=dev", "--json", "--loglevel=silent"];
  const { stdout } = inPublishedFolder(ROOT, (cwd) =>
    spawnSync("npm", args, { cwd, encoding: "utf8", env: npmEnvironment() }),
  );
  /** @type {{ metadata?: { vulnerabilities: { total: number } }, message?: string }} */
  const answer = JSON.parse(stdout || "{}");
  return { count: answer.metadata?.vulnerabilities.total, said: answer.message ?? "no answer" };
}

const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"));
const problems = lockProblems(lock);
for (const problem of problems) console.log(`lock file: ${problem}`);
if (problems.length === 0) {
  const names = Object.keys(runtimePackages(lock)).map((place) => place.replace("node_modules/", ""));
  console.log(`lock file: ok; at run time ${names.join(", ")}, none with an install script`);
}

const { count, said } = audit();
if (count === undefined) console.log(`npm audit --omit=dev: the registry could not be asked (${said})`);
else console.log(`npm audit --omit=dev: ${count} known holes`);
process.exitCode = problems.length === 0 && count === 0 ? 0 : 1;
