// Where in a configuration a value stands, in the caller's own spelling; every complaint about a value starts here.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { redactUrl } from "../core/redact.ts";
import { suggestName } from "../core/suggest-name.ts";

/** How the caller wrote the configuration. */
export interface Origin {
  /** What the whole is called in messages. */
  readonly whole: string;
  /** How a field is spelled there. */
  readonly spell: (field: string) => string;
  /** Where the value at this path was written, such as `cache.yaml:3:14`. */
  locate?(path: readonly string[]): string;
}

/** An object in code. */
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

const LONGEST_SHOWN = 60;

/** Keys are the caller's text: kept short, free of credentials and of line breaks. */
function shown(key: string): string {
  const safe = JSON.stringify(redactUrl(key)).slice(1, -1);
  return safe.length <= LONGEST_SHOWN ? safe : `${safe.slice(0, LONGEST_SHOWN)}\u2026`;
}

function join(path: readonly string[]): string {
  return path
    .map((key, depth) => {
      if (depth === 0) return shown(key);
      if (/^\d+$/.test(key)) return `[${shown(key)}]`;
      return /^[\w-]+$/.test(key) ? `.${shown(key)}` : `["${shown(key)}"]`;
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

/** What arrived, without anything that may be a credential. */
const arrival = (value: unknown): string =>
  describeArrival(typeof value === "string" ? redactUrl(value) : value);

export function rejectValue(place: Place, expected: string, value: unknown): never {
  throw new ConfigError("CONFIG_INVALID", `${labelOf(place)} must be ${expected}, got ${arrival(value)}`);
}

/** `fields` are the valid names in code. */
export function rejectKey(place: Place, key: string, fields: readonly string[]): never {
  const names = fields.map((field) => place.origin.spell(field));
  const at = keyAt(place, key);
  throw new ConfigError(
    "CONFIG_UNKNOWN_FIELD",
    `${located(at)}unknown field "${join(at.path)}": ${suggestName(key, names)}`,
  );
}
