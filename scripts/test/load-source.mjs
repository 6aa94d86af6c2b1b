// Loads TypeScript of this checkout, which not every supported Node can run by itself.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * @template T
 * @param {string} path
 * @returns {Promise<T>}
 */
export async function loadSource(path) {
  const options = {
    configFile: /** @type {const} */ (false),
    root: ROOT,
    logLevel: /** @type {const} */ ("error"),
  };
  const { module } = await runnerImport(join(ROOT, path), options);
  return /** @type {T} */ (module);
}
