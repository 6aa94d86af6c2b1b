// Programs from npm packages, installed into .cache/ when they are first needed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { npmEnvironment } from "../release/npm-environment.mjs";

const CACHE = fileURLToPath(new URL("../../.cache", import.meta.url));
const QUIET = ["--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"];

/**
 * The path of a file in a package.
 * @param {string} spec such as `pnpm@10`
 * @param {string} file
 * @param {string} [folder] its name in .cache
 */
export function programFromNpm(spec, file, folder = spec.replaceAll(/[@/]+/g, "-").replace(/^-/, "")) {
  const home = join(CACHE, folder);
  const program = join(home, "node_modules", spec.slice(0, spec.lastIndexOf("@")), file);
  if (existsSync(program)) return program;
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), '{ "private": true }\n');
  const { status } = spawnSync("npm", ["install", ...QUIET, spec], {
    cwd: home,
    env: npmEnvironment(),
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error(`npm could not install ${spec}.`);
  return program;
}
