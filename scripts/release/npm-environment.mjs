// The environment in which `npm` is the user's own: inside a script it may be one installed by a dependency.
import { delimiter, dirname } from "node:path";

/** @param {string} program the node that `npm` and `node` are to run on */
export function npmEnvironment(program = process.execPath) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const own = folders.filter((folder) => !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder));
  return { ...process.env, PATH: [dirname(program), ...own].join(delimiter) };
}
