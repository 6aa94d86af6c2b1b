// Parses the options after the `?` of a store address.
import { OR_TEXT, toSeconds } from "../duration.ts";
import { ConfigError, describeArrival } from "../errors.ts";
import { unicodePattern } from "../lazy-builtin.ts";
import { suggestName } from "../suggest-name.ts";
import { toSnake } from "../wire.ts";
import type { HostPort } from "./address.ts";

const hostAndPort = unicodePattern(String.raw`^(?:\[([\da-fA-F:.]+)\]|([\p{L}\p{N}._-]+)):(\d{1,5})$`);

/** Parses the text of one option; undefined when it is not what was `expected`. */
export interface UrlOption<T> {
  readonly expected: string;
  read(text: string): T | undefined;
  /** Never shown in messages. */
  readonly secret?: true;
}

export type UrlOptions<T> = { readonly [K in keyof T]-?: UrlOption<NonNullable<T[K]>> };

export const wholeNumber = (least: number): UrlOption<number> => ({
  expected: `a whole number of at least ${least}`,
  read(text) {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : -1;
    return Number.isSafeInteger(value) && value >= least ? value : undefined;
  },
});

export const oneOf = <const T extends string>(...choices: T[]): UrlOption<T> => ({
  expected: choices.join(" or "),
  read: (text) => choices.find((choice) => choice === text),
});

export const yesNo: UrlOption<boolean> = {
  expected: "true or false",
  read: (text) => (text === "true" ? true : text === "false" ? false : undefined),
};

export const someText: UrlOption<string> = {
  expected: "not empty",
  read: (text) => (text === "" || text.includes("\0") ? undefined : text),
};

/** As in CLIENT SETNAME. */
export const word: UrlOption<string> = {
  expected: "printable ASCII without spaces",
  read: (text) => (/^[!-~]+$/.test(text) ? text : undefined),
};

export const seconds = (least: number): UrlOption<number> => ({
  expected: `a number of seconds of at least ${least}, ${OR_TEXT}`,
  read(text) {
    const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : toSeconds(text);
    return typeof value === "number" && value >= least ? value : undefined;
  },
});

/** `host:port=host:port`, separated by commas. */
export const hostMap: UrlOption<ReadonlyMap<string, HostPort>> = {
  expected: "announced-host:port=host:port, separated by commas",
  read(text) {
    const map = new Map<string, HostPort>();
    for (const pair of text.split(",")) {
      const [from, to, ...rest] = pair.split("=").map(hostPortIn);
      if (from === undefined || to === undefined || rest.length > 0) return undefined;
      map.set(`${from.host.toLowerCase()}:${from.port}`, to);
    }
    return map;
  },
};

/** An IPv6 host stands in brackets. */
function hostPortIn(text: string): HostPort | undefined {
  const [, bracketed, plain, port] = hostAndPort().exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = Number(port);
  return host === undefined || number < 1 || number > 65_535 ? undefined : { host, port: number };
}

export const secretText: UrlOption<string> = { ...someText, secret: true };

/** Percent-decodes; returns undefined instead of throwing. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Advice for what is often mistaken for an option. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["password", "write the password before the host, as in redis://:password@host"],
  ["username", "write the user before the host, as in redis://user:password@host"],
]);

/**
 * Parses the part of an address after `?`. Throws ConfigError: CONFIG_UNKNOWN_FIELD with the nearest name for an unknown
 * option, CONFIG_INVALID for a bad value or a duplicate. `label` is the caller's name for the address.
 */
export function readUrlOptions<T extends object>(
  options: UrlOptions<T>,
  { query, label }: { readonly query: string; readonly label: string },
): T {
  const fields = Object.keys(options) as (keyof T & string)[];
  const byName = new Map(fields.map((field) => [toSnake<string>(field), field]));
  const read: Partial<T> = {};
  /** Anything after an option with this name may be part of its secret, if that contains a raw &. */
  let secretName: string | undefined;
  for (const part of query.split("&").filter((each) => each !== "")) {
    const equals = part.indexOf("=");
    const name = equals < 0 ? part : part.slice(0, equals);
    const field = byName.get(name);
    if (field === undefined) throw unknownOption(name, [...byName.keys()], label, secretName);
    const value = equals < 0 ? "" : decode(part.slice(equals + 1));
    const invalid = (what: string): ConfigError =>
      new ConfigError("CONFIG_INVALID", `${label}: the option ${name} ${what}`);
    if (value === undefined) throw invalid("is not valid percent-encoding");
    if (read[field] !== undefined) throw invalid("is given twice");
    const { expected, read: readText, secret } = options[field];
    if (secret) secretName = name;
    const result = readText(value);
    if (result === undefined) {
      const shown = secretName === undefined ? describeArrival(value) : "a hidden value";
      throw invalid(`must be ${expected}, got ${shown}`);
    }
    read[field] = result;
  }
  return read as T;
}

function unknownOption(
  name: string,
  names: readonly string[],
  label: string,
  secretName: string | undefined,
): ConfigError {
  if (secretName !== undefined) {
    const what = `unknown option after ${secretName}, not shown: a & in a value must be written as %26`;
    return new ConfigError("CONFIG_UNKNOWN_FIELD", `${label}: ${what}`);
  }
  const shown = describeArrival(decode(name) ?? name);
  const advice =
    ELSEWHERE.get(name.toLowerCase()) ??
    (names.length === 0 ? "this kind of address has no options" : suggestName(name, names));
  return new ConfigError("CONFIG_UNKNOWN_FIELD", `${label}: unknown option ${shown}: ${advice}`);
}
