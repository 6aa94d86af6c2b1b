// Options of backends: their names, and a bound that several of them share.
import { ConfigError, describeArrival } from "./errors.ts";
import { redactUrl } from "./redact.ts";
import { suggestName } from "./suggest-name.ts";
import { isPlainRecord } from "./wire.ts";

/**
 * Maximum number of entries in this process. V8's Map holds 2^24 keys, including those deleted since its last rehash, and
 * rehashes without growing only when half of its slots are deleted ones: so at most half of them may be in use.
 */
export const MOST_ENTRIES = 2 ** 23;

/** Throws ConfigError for anything but an object with these fields; a misspelled option must not be ignored. */
export function checkBackendOptions(
  backend: string,
  options: unknown,
  names: readonly string[],
): asserts options is Record<string, unknown> {
  if (!isPlainRecord(options)) {
    throw new ConfigError(
      "CONFIG_INVALID",
      // A store address in place of the options may hold a password.
      `${backend} options must be an object, got ${describeArrival(typeof options === "string" ? redactUrl(options) : options)}`,
    );
  }
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    throw new ConfigError(
      "CONFIG_UNKNOWN_FIELD",
      `${backend} has no option ${JSON.stringify(name)}; ${suggestName(name, names)}`,
    );
  }
}
