// The place of a value in a configuration, in the caller's own spelling; every rejection starts with it.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { redactUrl } from "../core/redact.ts";
import { suggestName } from "../core/suggest-name.ts";

/** How the caller wrote the configuration. */
export interface Origin {
  /** How messages name the configuration as a whole. */
  readonly whole: string;
  /** The spelling of a field in this origin. */
  readonly spell: (field: string) => string;
  /** Where the value at this path was written, such as `cache.yaml:3:14`. */
  locate?(path: readonly string[]): string;
}

/** A configuration object in code. */
export const CODE: Origin = { whole: "the configuration", spell: (field) => field };

export interface Place {
  readonly origin: Origin;
  /** The caller's spelling, outermost first. */
  readonly path: readonly string[];
}

export const rootOf = (origin: Origin): Place => ({ origin, path: [] });

/** The place of a key, as the caller wrote it. */
export const keyAt = (place: Place, key: string): Place => ({
  origin: place.origin,
  path: [...place.path, key],
});

const MAX_SHOWN = 60;

/** Keys are untrusted text: shortened, without credentials and line breaks. */
function printable(key: string): string {
  const safe = JSON.stringify(redactUrl(key)).slice(1, -1);
  return safe.length <= MAX_SHOWN ? safe : `${safe.slice(0, MAX_SHOWN)}\u2026`;
}

function join(path: readonly string[]): string {
  return path
    .map((key, depth) => {
      if (depth === 0) return printable(key);
      if (/^\d+$/.test(key)) return `[${printable(key)}]`;
      return /^[\w-]+$/.test(key) ? `.${printable(key)}` : `["${printable(key)}"]`;
    })
    .join("");
}

function located(place: Place): string {
  return place.origin.locate === undefined ? "" : `${place.origin.locate(place.path)}: `;
}

/** How messages name a place: `circuitBreaker.resetTimeout`, `cache.yaml:3:14: default_ttl`, `XCACHE_DEFAULT_TTL`. */
export function labelOf(place: Place): string {
  return located(place) + (place.path.length === 0 ? place.origin.whole : join(place.path));
}

/** Describes the value without revealing credentials. */
const arrival = (value: unknown): string =>
  describeArrival(typeof value === "string" ? redactUrl(value) : value);

/** In the place of a secret that arrived. */
export const HIDDEN = "***";

export function rejectValue(place: Place, expected: string, value: unknown): never {
  throw new ConfigError("CONFIG_INVALID", `${labelOf(place)} must be ${expected}, got ${arrival(value)}`);
}

/** `fields`: the valid names, as spelled in code. */
export function rejectKey(place: Place, key: string, fields: readonly string[]): never {
  const names = fields.map((field) => place.origin.spell(field));
  const at = keyAt(place, key);
  throw new ConfigError(
    "CONFIG_UNKNOWN_FIELD",
    `${located(at)}unknown field "${join(at.path)}": ${suggestName(key, names)}`,
  );
}
