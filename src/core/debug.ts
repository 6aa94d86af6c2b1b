// `DEBUG=xcache:<subject>`: lines about decisions and their reasons, on stderr.

/** Longer names are cut. */
const LONGEST_NAME = 200;

/** What acts on a terminal: control characters, line separators, direction marks and lone surrogates. */
export const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it escapes
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udfff]/gu;

/** Writes one line; undefined: nobody wants to know. */
export type DebugLog = (line: string) => void;

/** Read at every call: a test, or the application itself, may set the variable late. */
export function debugLog(subject: string): DebugLog | undefined {
  const name = `xcache:${subject}`;
  return isWanted(name, wantedNames()) ? (line) => process.stderr.write(`${name} ${line}\n`) : undefined;
}

/** Some runtimes refuse to read the environment. */
function wantedNames(): string {
  try {
    return process.env.DEBUG ?? "";
  } catch {
    return "";
  }
}

/** As the package `debug` reads it: names with wildcards, separated by commas or spaces; a leading `-` excludes. */
function isWanted(name: string, wanted: string): boolean {
  if (wanted === "") return false;
  const patterns = wanted.split(/[\s,]+/);
  const matches = (pattern: string): boolean =>
    pattern !== "" && new RegExp(`^${pattern.split("*").map(escaped).join(".*")}$`).test(name);
  if (patterns.some((pattern) => pattern.startsWith("-") && matches(pattern.slice(1)))) return false;
  return patterns.some(matches);
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** Keys of the HTTP cache hold whole addresses, and their queries may hold secrets. */
const QUERY = /(\/[^?]*\?).+/s;

/** A key or tag in a line: quoted, cut, without a query, and without anything that would act on a terminal. */
export function quotedName(name: string): string {
  const shown = name.replace(QUERY, "$1...");
  const start = shown.length <= LONGEST_NAME ? shown : `${shown.slice(0, LONGEST_NAME)}...`;
  return JSON.stringify(start).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
