// The key of one call: `name(arguments)`, readable while short and a sha-256 digest of the same text beyond.
import { ConfigError } from "../core/errors.ts";
import { nodeCrypto } from "../core/lazy-builtin.ts";
import { canonicalText, isPlainText, numberText, Unencodable } from "./argument-encoding.ts";

/** The longest key that is left readable, in UTF-16 units. */
export const LONGEST_READABLE_KEY = 120;

export type ArgumentKeys = (args: readonly unknown[]) => string;

/**
 * Makes the keys of the function called `name`. Different argument lists give different keys, whatever the name holds;
 * a missing argument is not an undefined one. Throws ConfigError ARGUMENT_INVALID for an argument without a
 * canonical text, naming function, argument and path.
 */
export function argumentKeys(name: string): ArgumentKeys {
  const [opened, openedWithText] = [`${name}(`, `${name}("`];
  return (args) => {
    // One number or one plain string is the usual call: nothing is made of it but the key.
    if (args.length === 1) {
      const only = args[0];
      if (typeof only === "number") return shortened(name, `${opened}${numberText(only)})`);
      if (typeof only === "string" && isPlainText(only)) return shortened(name, `${openedWithText}${only}")`);
    }
    const texts = args.map((value, index) => argumentText(name, value, index));
    return shortened(name, `${opened}${texts.join(",")})`);
  };
}

/** A digest never ends in ")", so the two forms cannot meet. */
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
      { hint: "Pass plain data, or pass `key` to say what identifies the call." },
    );
  }
}
