// Loads optional peer packages lazily, and checks their versions.
import { MissingPeerError } from "./errors.ts";
import { requirePackage } from "./lazy-builtin.ts";
import { installedVersion, isOlder, OLDEST_SUPPORTED } from "./peer-versions.ts";

/** Undefined if the package is not installed; an installed package that fails to load throws its own error. */
export function optionalPackage(name: string): unknown {
  try {
    return requirePackage(name);
  } catch (error) {
    if (isAbsent(error, name)) return undefined;
    throw error;
  }
}

/** Throws MissingPeerError if the package is not installed or older than `oldest`. */
export function requiredPackage(name: string, feature: string, oldest?: string): unknown {
  const found = optionalPackage(name);
  if (found === undefined) throw new MissingPeerError(name, feature);
  requirePeerVersion(name, feature, { oldest });
  return found;
}

/**
 * Throws MissingPeerError if the package is known to be older than `oldest`, by default the oldest supported version. `found`:
 * the version where the caller knows it, else that of the package an import would load.
 */
export function requirePeerVersion(
  name: string,
  feature: string,
  {
    found = installedVersion(name),
    oldest = OLDEST_SUPPORTED[name],
  }: { found?: string | undefined; oldest?: string | undefined } = {},
): void {
  if (found === undefined || oldest === undefined || !isOlder(found, oldest)) return;
  throw new MissingPeerError(name, feature, { found, oldest });
}

/** Whether the error says that this package is not there, rather than one that it needs. */
export function isAbsent(error: unknown, name: string): boolean {
  const { code, message, data } = error as NodeJS.ErrnoException & PlugAndPlayError;
  return code === "MODULE_NOT_FOUND" && (message.includes(`'${name}'`) || data?.dependencyName === name);
}

/** What Yarn Plug'n'Play adds to an error of a package that it does not find. */
interface PlugAndPlayError {
  readonly data?: { readonly dependencyName?: string };
}
