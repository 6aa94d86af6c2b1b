// Keys in LMDB: an area byte, then the bytes of the key, or a hash of a key that is too long.
import { createHash } from "node:crypto";
import { keyArgument, keyOfBytes } from "../../wire/key-bytes.ts";

/** A string is the key of a record in the plain area; anything else is given as bytes. */
export type DiskKey = string | Buffer;

/** The first byte of a key. */
export const AREA = {
  /** Metadata of the store; see format.ts. */
  about: 1,
  /** Records under their own keys. */
  plain: 2,
  /** Records under hashes of keys that are too long. */
  hashed: 3,
  /** Index by expiry, soonest first; see index-row.ts. */
  expiry: 4,
  /** Index by write time, oldest first. */
  age: 5,
} as const;

/** LMDB's limit is 1,978 bytes, whatever the page size. */
const LONGEST_PLAIN = 1_977;
const MOST_BYTES_A_UNIT = 3;

/** The disk key of a record. */
export function recordKey(key: string): DiskKey {
  const argument = keyArgument(key);
  if (typeof argument === "string" && key.length * MOST_BYTES_A_UNIT <= LONGEST_PLAIN) return key;
  const bytes = typeof argument === "string" ? Buffer.from(argument) : argument;
  if (bytes.length <= LONGEST_PLAIN) return inArea(AREA.plain, bytes);
  return inArea(AREA.hashed, createHash("sha256").update(bytes).digest());
}

export const isHashed = (key: DiskKey): boolean => typeof key !== "string" && key[0] === AREA.hashed;

/** The bytes of a full key, stored with a record under a hash. */
export function fullKeyBytes(key: string): Buffer {
  const argument = keyArgument(key);
  return typeof argument === "string" ? Buffer.from(argument) : argument;
}

/** The key of a record in the plain area. */
export const keyOfPlain = (key: Buffer): string => keyOfBytes(key.subarray(1));

export function inArea(area: number, rest: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(1 + rest.length);
  key[0] = area;
  key.set(rest, 1);
  return key;
}

/** The range of the keys in an area that start with these bytes. */
export function rangeOf(area: number, prefix: Uint8Array): { readonly start: Buffer; readonly end: Buffer } {
  const start = inArea(area, prefix);
  const end = Buffer.from(start);
  let last = end.length - 1;
  while (end[last] === 0xff) last--;
  end[last] = (end[last] as number) + 1;
  return { start, end: end.subarray(0, last + 1) };
}

/** The bytes of a prefix of plain keys; undefined if it is too long for one. */
export function plainPrefix(prefix: string): Buffer | undefined {
  const bytes = fullKeyBytes(prefix);
  return bytes.length > LONGEST_PLAIN ? undefined : bytes;
}

export const keyEncoder = {
  writeKey(key: DiskKey, target: Buffer, at: number): number {
    if (typeof key !== "string") {
      target.set(key, at);
      return at + key.length;
    }
    target[at] = AREA.plain;
    return at + 1 + target.write(key, at + 1, "utf8");
  },
  readKey: (source: Uint8Array, start: number, end: number): Buffer =>
    Buffer.from(source.subarray(start, end)),
};
