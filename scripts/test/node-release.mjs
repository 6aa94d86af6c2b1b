// Node programs of other releases, from npm packages that hold them; they are kept in .cache/.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { npmEnvironment } from "../release/npm-environment.mjs";

const CACHE = fileURLToPath(new URL("../../.cache", import.meta.url));
const QUIET = ["--no-save", "--no-audit", "--no-fund", "--no-package-lock"];

/**
 * The node program of a release: the running one where it fits, else from npm, installed when it is not there yet.
 * @param {string} release such as `24`
 */
export function nodeOfRelease(release) {
  if (process.versions.node.startsWith(`${release}.`)) return process.execPath;
  const isWindows = process.platform === "win32";
  const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  const folder = join(CACHE, `node-${release}`);
  const program = join(folder, "node_modules", name, "bin", isWindows ? "node.exe" : "node");
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const args = ["install", ...QUIET, `${name}@${release}`];
  const { status } = spawnSync("npm", args, {
    cwd: folder,
    env: npmEnvironment(),
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error(`npm could not install ${name}@${release}.`);
  return program;
}
