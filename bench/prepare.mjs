// Prepares a run: installs missing peers, compiles xcache when dist is stale.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

const installed = here("node_modules/.package-lock.json");
const isInstalled =
  existsSync(installed) && statSync(installed).mtimeMs >= statSync(here("package-lock.json")).mtimeMs;
if (!isInstalled) {
  console.error("Installing the peers (once) ...");
  // Errors only: one peer demands a newer Node than it needs.
  run("npm", ["ci", "--loglevel=error"], here("."));
}
if (!existsSync(here("../node_modules/typescript"))) {
  console.error("xcache itself cannot be compiled yet: run npm install in the root folder first.");
  process.exit(1);
}
run(process.execPath, [here("../scripts/build/build.mjs"), "--if-stale"], here(".."));
