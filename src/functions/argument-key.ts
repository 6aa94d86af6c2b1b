// The key of one call: `name(arguments)`, readable while short and a sha-256 digest of the same text beyond.
import { hash } from "node:crypto";
import { ConfigError } from "../core/errors.ts";
import { canonicalText, numberText, stringText, Unencodable } from "./canonical-text.ts";

/** The longest key that is left readable, in UTF-16 units. */
export const LONGEST_READABLE_KEY = 120;

const LONGEST_REMEMBERED_STRING = 64;
/** A power of two. */
const REMEMBERED_CALLS = 1024;

export type ArgumentKeys = (args: readonly unknown[]) => string;

/**
 * Makes the keys of the function called `name`. Different argument lists give different keys, whatever the name holds;
 * a missing argument is not an undefined one. Throws ConfigError ARGUMENT_INVALID for an argument without a
 * canonical text, naming function, argument and path.
 */
export function argumentKeys(name: string): ArgumentKeys {
  const recall = singleArgumentKeys(name);
  return (args) => {
    if (args.length === 1) {
      const only = args[0];
      if (typeof only === "number") return recall(only, only);
      if (typeof only === "string" && only.length <= LONGEST_REMEMBERED_STRING)
        return recall(only, spread(only));
    }
    return keyOf(name, args.map((value, index) => argumentText(name, value, index)).join(","));
  };
}

/**
 * One number or one short string is the usual call. Its key is kept in a direct-mapped table: the same string object
 * again costs no building, and a Map that is asked for it need not hash it anew.
 */
function singleArgumentKeys(name: string): (only: number | string, place: number) => string {
  const recentArguments: (number | string | undefined)[] = [];
  const recentKeys: string[] = [];
  return (only, place) => {
    const slot = place & (REMEMBERED_CALLS - 1);
    // 0 equals -0 here and needs another key.
    if (recentArguments[slot] === only && only !== 0) return recentKeys[slot]!;
    if (recentKeys.length === 0) {
      for (let i = 0; i < REMEMBERED_CALLS; i++) {
        recentArguments.push(undefined);
        recentKeys.push("");
      }
    }
    const key = keyOf(name, typeof only === "number" ? numberText(only) : stringText(only));
    recentArguments[slot] = only;
    recentKeys[slot] = key;
    return key;
  };
}

function spread(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) | 0;
  return Math.imul(sum, 0x9e3779b1) >>> 16;
}

function keyOf(name: string, argumentTexts: string): string {
  const key = `${name}(${argumentTexts})`;
  // A digest never ends in ")", so the two forms cannot meet.
  return key.length <= LONGEST_READABLE_KEY ? key : `${name}#${hash("sha256", key, "base64url")}`;
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
