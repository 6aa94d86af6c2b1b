// Checks the names of a backend's options.
import { ConfigError, describeArrival } from "./errors.ts";
import { redactUrl } from "./redact.ts";
import { suggestName } from "./suggest-name.ts";
import { isPlainRecord } from "./wire.ts";

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
