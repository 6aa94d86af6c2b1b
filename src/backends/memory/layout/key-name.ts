// The name of a key in a Map. V8 hashes strings of more than 16,383 units by length only, so long keys of one length would
// share one bucket of a Map, and each lookup would compare them one by one. Such a key is replaced by a digest: a bigint,
// which no key can be, with a secret of the process, so that an attacker cannot choose its bucket.
import { systemClock } from "../../../core/clock.ts";
import { nodeCrypto } from "../../../core/lazy-builtin.ts";

const LONGEST_HASHED = 16_383;
let secret: string | undefined;

export type KeyName = string | bigint;

/** Callers may pass something that is not a key: it is its own name, and nothing is stored under it. */
export function nameOf(key: string): KeyName {
  return typeof key === "string" && key.length > LONGEST_HASHED ? digestOf(key) : key;
}

/** Hashes UTF-16 units: in UTF-8, different lone surrogates would become the same character. */
function digestOf(key: string): bigint {
  secret ??= systemClock.token();
  const hash = nodeCrypto().createHash("sha256").update(secret, "latin1").update(key, "utf16le");
  return BigInt(`0x${hash.digest("hex")}`);
}
