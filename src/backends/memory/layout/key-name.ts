// The name under which a Map keeps a key. V8 hashes a string of more than 16,383 units by its length alone, so long keys of
// one length would all stand in one chain of a Map, and each lookup would compare them one by one. Those get a digest
// for a name: a bigint, which no key can be. Under a secret of the process, so that nobody can choose where it stands.
import { systemClock } from "../../../core/clock.ts";
import { nodeCrypto } from "../../../core/lazy-builtin.ts";

const LONGEST_HASHED = 16_383;
let secret: string | undefined;

export type KeyName = string | bigint;

/** Callers may ask for what is no key at all: nothing is kept under that, and it is its own name. */
export function nameOf(key: string): KeyName {
  return typeof key === "string" && key.length > LONGEST_HASHED ? digestOf(key) : key;
}

/** Of the UTF-16 units: as UTF-8, two halves of surrogate pairs would be one. */
function digestOf(key: string): bigint {
  secret ??= systemClock.token();
  const hash = nodeCrypto().createHash("sha256").update(secret, "latin1").update(key, "utf16le");
  return BigInt(`0x${hash.digest("hex")}`);
}
