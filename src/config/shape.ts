// The value types of configuration fields: what is expected, how it is checked, and how it is parsed from text.
import { HOUR_MS, OR_TEXT, toSeconds, warnOfMilliseconds } from "../core/duration.ts";
import { isPlainRecord, toSnake } from "../core/wire.ts";
import { keyAt, labelOf, type Place, rejectKey, rejectValue } from "./place.ts";

export interface Shape<T> {
  /** Completes "must be ...". */
  readonly expected: string;
  /** Returns the value to use, or throws ConfigError naming the place. Idempotent. */
  check(value: unknown, place: Place): T;
  /**
   * Parses an environment variable or a flag; text it cannot parse is returned unchanged, for `check` to reject.
   * Absent: the field cannot be set as text.
   */
  readonly fromText?: (text: string) => unknown;
  /** Replaces `expected` where text allows fewer values. */
  readonly expectedText?: string;
  /** What arrived is not shown in errors. */
  readonly isSecret?: true;
  /** Nested fields, if any. */
  readonly members?: Readonly<Record<string, Member<unknown>>>;
}

/** One field of a record. */
export interface Member<T> {
  readonly shape: Shape<T>;
  /** Used when the field is omitted. */
  readonly default: T;
  readonly unit?: string;
  readonly description: string;
}

export type Members<T> = { readonly [K in keyof T]-?: Member<T[K]> };

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function numberFromText(text: string): unknown {
  const trimmed = text.trim();
  if (/^\+?infinity$/i.test(trimmed)) return Number.POSITIVE_INFINITY;
  // An overflowing number is a mistake, not a request for Infinity.
  return DECIMAL.test(trimmed) && Number.isFinite(Number(trimmed)) ? Number(trimmed) : text;
}

const WORDS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["on", true],
  ["false", false],
  ["0", false],
  ["no", false],
  ["off", false],
]);

const booleanFromText = (text: string): unknown => WORDS.get(text.trim().toLowerCase()) ?? text;

export const boolean: Shape<boolean> = {
  expected: "true or false",
  check(value, place) {
    return typeof value === "boolean" ? value : rejectValue(place, this.expected, value);
  },
  fromText: booleanFromText,
};

function number(expected: string, allowed: (value: number) => boolean): Shape<number> {
  return {
    expected,
    check: (value, place) =>
      typeof value === "number" && allowed(value) ? value : rejectValue(place, expected, value),
    fromText: numberFromText,
  };
}

/** A shorter time would round down to 0 ms. */
const SHORTEST_SECONDS = 0.001;

function duration(expected: string, allowed: (seconds: number) => boolean): Shape<number> {
  return {
    expected,
    check(value, place) {
      const seconds = toSeconds(value);
      return typeof seconds === "number" && allowed(seconds) ? seconds : rejectValue(place, expected, value);
    },
    fromText(text) {
      const seconds = toSeconds(text.trim());
      return typeof seconds === "number" ? seconds : numberFromText(text);
    },
  };
}

const anyLifetime = duration(
  `a number of seconds, at least 0.001, or Infinity, ${OR_TEXT}`,
  (value) => value >= SHORTEST_SECONDS,
);

/** A ttl. */
export const lifetime: Shape<number> = {
  ...anyLifetime,
  check(value, place) {
    const seconds = anyLifetime.check(value, place);
    if (seconds >= HOUR_MS && typeof value === "number") warnOfMilliseconds(seconds, labelOf(place));
    return seconds;
  },
};

/** A finite wait. */
export const timeout = duration(
  `a finite number of seconds, at least 0.001, ${OR_TEXT}`,
  (value) => value >= SHORTEST_SECONDS && value < Number.POSITIVE_INFINITY,
);

/** A finite time that may be 0. */
export const span = duration(
  `a finite number of seconds, at least 0, ${OR_TEXT}`,
  (value) => value >= 0 && value < Number.POSITIVE_INFINITY,
);

export const fraction = number("a number from 0 to less than 1", (value) => value >= 0 && value < 1);

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): Shape<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return number(
    `a whole number ${range}`,
    (value) => Number.isSafeInteger(value) && value >= least && value <= most,
  );
}

/** A non-empty string; lone surrogates are rejected, since UTF-8 maps them all to one character. */
export function text(mostBytes: number): Shape<string> {
  const expected = `a non-empty string of at most ${mostBytes} bytes of UTF-8`;
  return {
    expected,
    check: (value, place) =>
      typeof value === "string" &&
      value.length > 0 &&
      !/[\ud800-\udfff]/u.test(value) &&
      Buffer.byteLength(value) <= mostBytes
        ? value
        : rejectValue(place, expected, value),
    fromText: (line) => line,
  };
}

export function choice<const T extends string>(
  choices: readonly T[],
  refuse?: (choice: T) => string | undefined,
): Shape<T> {
  const expected = choices.map((each) => `"${each}"`).join(" or ");
  return {
    expected,
    check(value, place) {
      const chosen = choices.find((each) => each === value) ?? rejectValue(place, expected, value);
      const why = refuse?.(chosen);
      return why === undefined ? chosen : rejectValue(place, why, value);
    },
    fromText: (line) => line.trim(),
  };
}

function list<T>(item: Shape<T>, items: string): Shape<readonly T[]> {
  const expected = `a list of ${items}`;
  return {
    expected,
    check(value, place) {
      if (!Array.isArray(value)) return rejectValue(place, expected, value);
      return Object.freeze(Array.from(value, (each, at) => item.check(each, keyAt(place, String(at)))));
    },
  };
}

/** A list of texts, or one. */
export function textOrTexts(item: Shape<string>): Shape<readonly string[]> {
  const expected = "a string or a list of strings";
  const texts = list(item, "strings");
  return {
    expected,
    check(value, place) {
      if (Array.isArray(value)) return texts.check(value, place);
      return typeof value === "string" && value !== ""
        ? Object.freeze([item.check(value, place)])
        : rejectValue(place, expected, value);
    },
  };
}

/** A map with user-defined keys. */
export function mapOf<T>(
  item: Shape<T>,
  keys: Shape<string>,
  expected: string,
): Shape<Readonly<Record<string, T>>> {
  return {
    expected,
    check(value, place) {
      if (!isPlainRecord(value)) return rejectValue(place, expected, value);
      const checked: Record<string, T> = Object.create(null);
      for (const [key, each] of Object.entries(value)) {
        if (each === undefined) continue;
        const at = keyAt(place, key);
        checked[keys.check(key, at)] = item.check(each, at);
      }
      return Object.freeze(checked);
    },
    ...(item.members && { members: item.members }),
  };
}

/** How a record of these fields is described: `{ max_entries, max_bytes }`. */
const braces = (fields: readonly string[], spell: (field: string) => string): string =>
  `{ ${fields.map(spell).join(", ")} }`;

/** Checks the given fields; omitted ones stay omitted. An unknown key is an error. */
export function checkGiven<T extends object>(members: Members<T>, value: unknown, place: Place): Partial<T> {
  const fields = Object.keys(members) as (keyof T & string)[];
  const { spell } = place.origin;
  if (!isPlainRecord(value)) {
    return rejectValue(place, place.path.length === 0 ? "an object" : braces(fields, spell), value);
  }
  const bySpelling = new Map(fields.map((field) => [spell(field), field]));
  const checked: Partial<T> = {};
  for (const [key, given] of Object.entries(value)) {
    const field = bySpelling.get(key) ?? rejectKey(place, key, fields);
    if (given !== undefined) checked[field] = members[field].shape.check(given, keyAt(place, key));
  }
  return checked;
}

/** Adds defaults for the omitted fields; a default of undefined leaves the field out. */
function withDefaults<T extends object>(members: Members<T>, given: Partial<T>): T {
  const whole: Partial<T> = {};
  for (const field of Object.keys(members) as (keyof T)[]) {
    const value = given[field] ?? members[field].default;
    if (value !== undefined) whole[field] = value;
  }
  return Object.freeze(whole) as T;
}

/** An object with known fields. */
export function record<T extends object>(members: Members<T>): Shape<T> {
  return {
    expected: braces(Object.keys(members), toSnake),
    check: (value, place) => withDefaults(members, checkGiven(members, value, place)),
    members,
  };
}

/** A feature that is off, on with defaults, or on with settings. */
export function switchable<T extends object>(members: Members<T>): Shape<false | T> {
  const settings = record(members);
  return {
    expected: `true, false or ${settings.expected}`,
    check(value, place) {
      if (typeof value === "boolean") return value && settings.check({}, place);
      if (isPlainRecord(value)) return settings.check(value, place);
      return rejectValue(place, `true, false or ${braces(Object.keys(members), place.origin.spell)}`, value);
    },
    fromText: booleanFromText,
    expectedText: boolean.expected,
    members,
  };
}

/** An object that implements an interface; it is used unchanged. */
export function implementing<T extends object>(
  expected: string,
  parts: Readonly<Partial<Record<keyof T & string, "function" | "object" | "string">>>,
): Shape<T> {
  return {
    expected,
    check(value, place) {
      if (typeof value !== "object" || value === null) return rejectValue(place, expected, value);
      const missing = Object.entries(parts).filter(
        ([part, type]) => typeof (value as Record<string, unknown>)[part] !== type,
      );
      if (missing.length === 0) return value as T;
      return rejectValue(place, `${expected} (it needs ${missing.map(([part]) => part).join(", ")})`, value);
    },
  };
}
