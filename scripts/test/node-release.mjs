// Node programs of other releases, from npm packages that contain them.
import { programFromNpm } from "./npm-program.mjs";

/**
 * The node program of a release: the running one if it matches, otherwise from npm, installed if missing.
 * @param {string} release such as `24`
 */
export function nodeOfRelease(release) {
  if (process.versions.node.startsWith(`${release}.`)) return process.execPath;
  const isWindows = process.platform === "win32";
  const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  return programFromNpm(`${name}@${release}`, isWindows ? "bin/node.exe" : "bin/node", `node-${release}`);
}
