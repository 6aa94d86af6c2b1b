// Loads optional peer packages lazily.
import { MissingPeerError } from "../core/errors.ts";
import { requirePackage } from "../core/lazy-builtin.ts";

/** Undefined if the package is not installed; an installed package that fails to load throws its own error. */
export function optionalPackage(name: string): unknown {
  try {
    return requirePackage(name);
  } catch (error) {
    if (isAbsent(error, name)) return undefined;
    throw error;
  }
}

export function requiredPackage(name: string, feature: string): unknown {
  const found = optionalPackage(name);
  if (found === undefined) throw new MissingPeerError(name, feature);
  return found;
}

function isAbsent(error: unknown, name: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "MODULE_NOT_FOUND" && message.includes(`'${name}'`);
}
