// Parses Cache-Control (RFC 9111, 5.2) and targeted CDN directives (RFC 9213) conservatively: malformed input caches less.
// Every parse is a single pass, so hostile input costs linear time.

/** Larger values are reduced to this one (RFC 9111, 1.2.2). */
export const LONGEST_SECONDS = 2 ** 31;

export class Directives {
  /** The arguments of each directive, one per occurrence; undefined where it had none. */
  readonly #given: ReadonlyMap<string, readonly (string | undefined)[]>;
  /** A quoted string was not terminated, or a malformed directive names one that forbids storing. */
  readonly isBroken: boolean;

  constructor(given: ReadonlyMap<string, readonly (string | undefined)[]>, isBroken = false) {
    this.#given = given;
    this.isBroken = isBroken;
  }

  /** With or without an argument: `private="x"` counts as plain `private`. */
  has(name: string): boolean {
    return this.#given.has(name);
  }

  hasAny(names: Iterable<string>): boolean {
    for (const name of names) if (this.#given.has(name)) return true;
    return false;
  }

  /**
   * The argument in seconds, or undefined if the directive is absent. The smallest of several; 0 for anything that is not
   * a number, because stale is always safe (RFC 9111, 4.2.1).
   */
  seconds(name: string): number | undefined {
    const values = this.#given.get(name);
    return values === undefined ? undefined : Math.min(...values.map((value) => parseSeconds(value) ?? 0));
  }

  argument(name: string): string | undefined {
    return this.#given.get(name)?.[0];
  }
}

export const NO_DIRECTIVES = new Directives(new Map());

/** delta-seconds (RFC 9111, 1.2.2); undefined for anything else. */
export function parseSeconds(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 48 || code > 57) return undefined;
  }
  return Math.min(Number(text), LONGEST_SECONDS);
}

/** `text`: the lines of a Cache-Control field, joined. */
export function parseCacheControl(text: string | undefined): Directives {
  if (text === undefined) return NO_DIRECTIVES;
  const given = new Map<string, (string | undefined)[]>();
  let start = 0;
  let isQuoted = false;
  let isHiding = false;
  for (let at = 0; at <= text.length; at++) {
    const character = text[at];
    if (isQuoted && character === "\\") at++;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === undefined || (character === "," && !isQuoted)) {
      const directive = text.slice(start, at);
      add(given, directive);
      isHiding ||= FORBIDDING.test(directive) && !WELL_FORMED.test(directive);
      start = at + 1;
    }
  }
  return new Directives(given, isQuoted || isHiding);
}

/** RFC 9111, 5.2. Directives separated by anything but a comma are one that is not. */
const WELL_FORMED = /^[ \t]*[!#$%&'*+\-.^_`|~\w]+(?:=(?:[!#$%&'*+\-.^_`|~\w]+|"(?:[^"\\]|\\.)*"))?[ \t]*$/s;
const FORBIDDING = /(?<![\w-])(?:private|no-store|no-cache)(?![\w-])/i;

function add(given: Map<string, (string | undefined)[]>, directive: string): void {
  const equals = directive.indexOf("=");
  const name = (equals < 0 ? directive : directive.slice(0, equals)).trim().toLowerCase();
  if (name === "") return;
  const values = given.get(name) ?? [];
  values.push(equals < 0 ? undefined : argumentOf(directive, equals));
  given.set(name, values);
}

/** Whitespace around `=` is not allowed; the argument then counts as empty. */
function argumentOf(directive: string, equals: number): string {
  const value = directive.slice(equals + 1).trimEnd();
  if (directive[equals - 1]?.trim() === "" || value.trimStart() !== value) return "";
  if (!value.startsWith('"')) return value;
  return value.length > 1 && value.endsWith('"') ? value.slice(1, -1).replaceAll("\\", "") : "";
}

const KEY = /[a-z*][a-z0-9_\-.*]*/y;
const BARE_ITEM =
  /-?\d{1,15}(?:\.\d{1,3})?|"(?:[ !#-[\]-~]|\\["\\])*"|\?[01]|:[A-Za-z0-9+/=]*:|[A-Za-z*][\w!#$%&'*+\-.^`|~:/]*/y;
const BLANKS = /[ \t]*/y;

const TAKES_SECONDS = new Set(["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]);
const KNOWN = new Set([
  ...TAKES_SECONDS,
  "no-store",
  "no-cache",
  "private",
  "public",
  "must-revalidate",
  "proxy-revalidate",
  "must-understand",
]);

/**
 * A targeted field, which is a structured-field dictionary (RFC 9213, 2.1). Undefined, as if absent, if it does not parse,
 * has an argument of the wrong type or contains no known directive.
 */
export function parseTargeted(text: string | undefined): Directives | undefined {
  if (text === undefined) return undefined;
  const given = new Map<string, (string | undefined)[]>();
  const reader = new Reader(text.trim());
  for (;;) {
    const key = reader.take(KEY);
    if (key === undefined) return undefined;
    const value = reader.skip("=") ? reader.take(BARE_ITEM) : "?1";
    if (value === undefined || !reader.skipParameters()) return undefined;
    if (TAKES_SECONDS.has(key) && parseSeconds(value) === undefined) return undefined;
    if (value === "?0") given.delete(key);
    else given.set(key, [value === "?1" ? undefined : value]);
    if (reader.isAtEnd) break;
    reader.take(BLANKS);
    if (!reader.skip(",")) return undefined;
    reader.take(BLANKS);
  }
  const directives = new Directives(given);
  return directives.hasAny(KNOWN) ? directives : undefined;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  skipParameters(): boolean {
    while (this.skip(";")) {
      this.take(BLANKS);
      if (this.take(KEY) === undefined) return false;
      if (this.skip("=") && this.take(BARE_ITEM) === undefined) return false;
    }
    return true;
  }
}
