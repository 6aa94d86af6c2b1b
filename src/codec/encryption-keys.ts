// The keys of the encryption, from the secrets in the configuration.
import type { EncryptionConfig } from "../core/encryption-settings.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { nodeCrypto } from "../core/lazy-builtin.ts";
import { isPlainRecord } from "../core/wire.ts";

/** At least as many bytes as a key of 128 bits. */
const SHORTEST_SECRET_BYTES = 16;
const LONGEST_ID_BYTES = 255;

export interface Keys {
  readonly byId: ReadonlyMap<string, Buffer>;
  readonly use: string;
  /** The id of the key that hides names, and that key. */
  readonly hiding: string | undefined;
  readonly names: Buffer | undefined;
}

/** Undefined where a function hands them out. Throws ConfigError. */
export const knownKeys = ({ keys, use, hideKeys }: EncryptionConfig): Keys | undefined =>
  typeof keys === "function" ? undefined : keysOf(keys, use, hideKeys);

/** Throws ConfigError. */
export function keysOf(given: unknown, use: unknown, hideKeys: unknown): Keys {
  if (!isPlainRecord(given)) throw invalidSetting("encryption.keys", "an object of secrets by id", given);
  const byId = new Map<string, Buffer>();
  for (const [id, secret] of Object.entries<unknown>(given)) byId.set(idOf(id), keyFrom(id, secret));
  const only = byId.size === 1 ? byId.keys().next().value : undefined;
  const used = use ?? only;
  const ids = [...byId.keys()].map((id) => JSON.stringify(id)).join(", ") || "none";
  if (typeof used !== "string" || !byId.has(used))
    throw invalidSetting("encryption.use", `the id of one of the keys (${ids})`, use);
  const first = hideKeys === true ? byId.keys().next().value : hideKeys;
  const hiding = typeof first === "string" ? first : undefined;
  const names = hiding === undefined ? undefined : byId.get(hiding);
  if (hiding !== undefined && names === undefined)
    throw invalidSetting(
      "encryption.hide_keys",
      `true, false or the id of one of the keys (${ids})`,
      hideKeys,
    );
  return { byId, use: used, hiding, names };
}

function idOf(id: string): string {
  const bytes = Buffer.byteLength(id);
  if (bytes > 0 && bytes <= LONGEST_ID_BYTES) return id;
  throw new ConfigError(
    "CONFIG_INVALID",
    `encryption.keys: an id must have 1 to ${LONGEST_ID_BYTES} bytes of UTF-8, got ${bytes}`,
  );
}

/** The master key of a secret. What arrived is never shown. */
function keyFrom(id: string, secret: unknown): Buffer {
  const isSecret = typeof secret === "string" || secret instanceof Uint8Array;
  const bytes = isSecret ? Buffer.byteLength(secret) : 0;
  if (isSecret && bytes >= SHORTEST_SECRET_BYTES)
    return Buffer.from(nodeCrypto().hkdfSync("sha256", secret, "xcache", "entries", 32));
  const arrived = isSecret ? `${bytes} bytes` : `a value of type ${typeof secret}`;
  throw new ConfigError(
    "CONFIG_INVALID",
    `encryption.keys: the secret of ${JSON.stringify(id)} must be a string or Uint8Array of at least ` +
      `${SHORTEST_SECRET_BYTES} bytes, got ${arrived}`,
    { hint: "Make one with `openssl rand -base64 32`." },
  );
}

/** What arrived may be a secret in the wrong place. */
export function invalidSetting(what: string, expected: string, arrived: unknown): ConfigError {
  const shown =
    typeof arrived === "string" ? `a string of ${arrived.length} characters` : describeArrival(arrived);
  return new ConfigError("CONFIG_INVALID", `${what} must be ${expected}, got ${shown}`);
}
