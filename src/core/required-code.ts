// The code behind `cachedDependency` where the library is not bundled: a file of CommonJS, loaded synchronously on the first call.
import { ConfigError } from "./errors.ts";
import { nodeUrl, packageRequire } from "./lazy-builtin.ts";

/** What the file exports: it makes its own exports of what it uses of the library, so that nothing is there twice. */
type Made<Code> = (shared: object) => Code;

/** There is none in an ES module, but some bundlers follow it. */
declare const require: (path: string) => unknown;

/**
 * Throws ConfigError CODE_MISSING in a bundle that has been made without the file. `cachedDependencyCode`, which the build adds to the
 * library, calls it once.
 */
export function requiredCode<Code>(shared: object): Code {
  return (required() as Made<Code>)(shared);
}

function required(): unknown {
  try {
    return require("./cached-dependency.cjs");
  } catch {
    // Not in such a bundle.
  }
  try {
    // In a form that is understood by what collects the files of a deployment.
    const address = new URL("./cached-dependency.cjs", import.meta.url);
    return packageRequire()(nodeUrl().fileURLToPath(address));
  } catch (cause) {
    throw new ConfigError(
      "CODE_MISSING",
      "cachedDependency(): its code, chunk/cached-dependency.cjs of xcache, is not where the rest of the library is.",
      { cause },
    );
  }
}
