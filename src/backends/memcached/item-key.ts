// The name of a record's key on a server: base64 text, which memcached decodes (flag b) before the lookup.
//
// A prefix of 6 bytes says which kind of key it is: one of this list of servers, so that another list finds none of its
// items; one of this list that is too long and is replaced by its SHA-256; or a note about a server. 6 bytes are 8 base64
// letters without padding, so the rest is encoded on its own. No byte of a key is sent as it is: none can end a command.
import { createHash } from "node:crypto";
import { keyArgument } from "../wire/key-bytes.ts";
import { anchoredTo } from "./ring.ts";

/** The longest key that memcached accepts. */
export const LONGEST_ITEM_KEY = 250;
const PREFIX_LETTERS = 8;
/** Bytes of a key that fit after the prefix: 60 groups of 3 become 240 letters. */
const MOST_BYTES = 180;
/** A UTF-16 unit takes 3 bytes at most. */
const SURELY_FITS = MOST_BYTES / 3;

const ALPHABET = Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "latin1");
const PADDING = "=".charCodeAt(0);
const NOTE_MARK = "!";

interface Prefixes {
  readonly spelled: Buffer;
  /** For keys that are too long. */
  readonly hashed: Buffer;
}

const NOTE_PREFIXES = prefixesOf(Buffer.from("xcache"));

export class ItemKeys {
  readonly #prefixes: Prefixes;

  /** `fingerprint`: that of the list of servers. */
  constructor(fingerprint: Buffer) {
    this.#prefixes = prefixesOf(fingerprint);
  }

  /** Writes the text of a key, which takes at most LONGEST_ITEM_KEY letters, and returns where it ends. */
  write(out: Buffer, at: number, key: string): number {
    const isNote = key.includes(NOTE_MARK) && anchoredTo(key) !== undefined;
    const { spelled, hashed } = isNote ? NOTE_PREFIXES : this.#prefixes;
    if (isHashed(key)) return writeBytes(out, writePrefix(out, at, hashed), sha256(bytesOf(key)));
    const start = writePrefix(out, at, spelled);
    const end = writeAscii(out, start, key);
    return end < 0 ? writeBytes(out, start, bytesOf(key)) : end;
  }
}

/** Whether a key is too long to be spelled out: then its record carries the key, for comparison. */
export function isHashed(key: string): boolean {
  return key.length > SURELY_FITS && Buffer.byteLength(key) > MOST_BYTES;
}

function bytesOf(key: string): Buffer {
  const exact = keyArgument(key);
  return typeof exact === "string" ? Buffer.from(exact) : exact;
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

function prefixesOf(bytes: Buffer): Prefixes {
  return { spelled: lettersOf(bytes), hashed: lettersOf(sha256(bytes).subarray(0, bytes.length)) };
}

function lettersOf(bytes: Uint8Array): Buffer {
  return Buffer.from(Buffer.from(bytes).toString("base64"), "latin1");
}

function writePrefix(out: Buffer, at: number, prefix: Buffer): number {
  for (let index = 0; index < PREFIX_LETTERS; index++) out[at + index] = prefix[index] as number;
  return at + PREFIX_LETTERS;
}

function writeBytes(out: Buffer, at: number, bytes: Buffer): number {
  return at + out.write(bytes.toString("base64"), at, "latin1");
}

/** The common case, where a loop beats calls into the runtime. -1 if the key is not ASCII. */
function writeAscii(out: Buffer, start: number, key: string): number {
  const { length } = key;
  const whole = length - (length % 3);
  let union = 0;
  let to = start;
  let at = 0;
  for (; at < whole; at += 3) {
    const a = key.charCodeAt(at);
    const b = key.charCodeAt(at + 1);
    const c = key.charCodeAt(at + 2);
    union |= a | b | c;
    out[to++] = ALPHABET[(a >> 2) & 63] as number;
    out[to++] = ALPHABET[((a & 3) << 4) | ((b >> 4) & 15)] as number;
    out[to++] = ALPHABET[((b & 15) << 2) | ((c >> 6) & 3)] as number;
    out[to++] = ALPHABET[c & 63] as number;
  }
  if (at < length) {
    const a = key.charCodeAt(at);
    const b = at + 1 < length ? key.charCodeAt(at + 1) : 0;
    union |= a | b;
    out[to++] = ALPHABET[(a >> 2) & 63] as number;
    out[to++] = ALPHABET[((a & 3) << 4) | ((b >> 4) & 15)] as number;
    out[to++] = at + 1 < length ? (ALPHABET[(b & 15) << 2] as number) : PADDING;
    out[to++] = PADDING;
  }
  return union > 0x7f ? -1 : to;
}
