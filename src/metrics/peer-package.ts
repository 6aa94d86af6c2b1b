// Loads an optional package when it is first needed.
import { createRequire } from "node:module";
import { MissingPeerError } from "../core/errors.ts";

const load = createRequire(import.meta.url);

/** The package, or undefined when it is not installed; one that is there and fails to load throws its own error. */
export function optionalPackage(name: string): unknown {
  try {
    return load(name) as unknown;
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
