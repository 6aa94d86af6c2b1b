// The key of a call: `name(arguments)` while it is short, otherwise the SHA-256 digest of the same text.
import { ConfigError } from "../core/errors.ts";
import { nodeCrypto } from "../core/lazy-builtin.ts";
import { canonicalText, isPlainText, numberText, Unencodable } from "./argument-encoding.ts";

/** The longest key that is not hashed, in UTF-16 units. */
export const LONGEST_READABLE_KEY = 120;

export type ArgumentKeys = (args: readonly unknown[]) => string;

/**
 * Builds the keys of the function called `name`. Different argument lists give different keys, whatever the name
 * contains; a missing argument differs from an undefined one. Throws ConfigError ARGUMENT_INVALID for an argument without
 * a canonical text, naming function, argument and path.
 */
export function argumentKeys(name: string): ArgumentKeys {
  const [opened, openedWithText] = [`${name}(`, `${name}("`];
  return (args) => {
    // Fast path for the usual call with one number or one plain string: nothing but the key is allocated.
    if (args.length === 1) {
      const only = args[0];
      if (typeof only === "number") return shortened(name, `${opened}${numberText(only)})`);
      if (typeof only === "string" && isPlainText(only)) return shortened(name, `${openedWithText}${only}")`);
    }
    const texts = args.map((value, index) => argumentText(name, value, index));
    return shortened(name, `${opened}${texts.join(",")})`);
  };
}

/** A digest never ends in ")", so the two forms cannot collide. */
function shortened(name: string, key: string): string {
  return key.length <= LONGEST_READABLE_KEY
    ? key
    : `${name}#${nodeCrypto().hash("sha256", key, "base64url")}`;
}

function argumentText(name: string, value: unknown, index: number): string {
  try {
    return canonicalText(value);
  } catch (error) {
    if (!(error instanceof Unencodable)) throw error;
    const place = error.path === "" ? "" : ` at ${error.path}`;
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `${name}(): argument ${index + 1}${place} is ${error.reason}, which cannot be part of a cache key; expected plain data.`,
      { hint: "Pass plain data, or use the option `key` to choose what identifies the call." },
    );
  }
}
