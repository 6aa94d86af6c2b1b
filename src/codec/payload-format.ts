// Numbers that are stored in payloads: the format byte (serialization in the low half, compression in the high half) and
// the MessagePack extension types of xcache. Never reuse one.
import { CodecError } from "../core/errors.ts";
import { VIEW_TYPE_COUNT } from "./binary-view.ts";
import type { CompressionAlgorithm } from "./options.ts";

export type Serialization = "msgpack" | "json";

// The positions are stored: append only.
const SERIALIZATIONS: readonly Serialization[] = ["msgpack", "json"];
const COMPRESSIONS: readonly (CompressionAlgorithm | "none")[] = ["none", "gzip", "brotli", "zstd"];

export interface PayloadFormat {
  readonly serialization: Serialization;
  readonly compression: CompressionAlgorithm | "none";
}

export function formatByte(format: PayloadFormat): number {
  return SERIALIZATIONS.indexOf(format.serialization) | (COMPRESSIONS.indexOf(format.compression) << 4);
}

/** The payload is encrypted and holds a format of its own: see encryption.ts. No combination of the halves has this value. */
export const SEALED = 0xff;

export const PLAIN_MSGPACK = formatByte({ serialization: "msgpack", compression: "none" });

/** Throws CodecError for a format unknown to this version. */
export function readFormat(byte: number): PayloadFormat {
  const serialization = SERIALIZATIONS[byte & 0x0f];
  const compression = COMPRESSIONS[byte >> 4];
  if (byte === SEALED) {
    throw new CodecError(
      "ENTRY_UNREADABLE",
      "The entry is encrypted, and this cache has no encryption keys.",
    );
  }
  if (serialization === undefined || compression === undefined) {
    throw new CodecError("FRAME_VERSION", `Payload format ${byte} is unknown to this version of xcache.`);
  }
  return { serialization, compression };
}

export const EXTENSION = {
  /** One byte, ignored. */
  undefined: 0,
  /** UTF-16LE: only strings with lone surrogates, which UTF-8 cannot encode. */
  text16: 1,
  /** A sign byte, then the magnitude, most significant byte first: only what does not fit int64 and uint64. */
  bigint: 2,
  /** Milliseconds since the epoch as float64; NaN for an invalid date. */
  date: 3,
  /** [source, flags] */
  regexp: 4,
  /** A MessagePack map with keys of any type. */
  map: 5,
  /** A MessagePack array. */
  set: 6,
  /** An array with holes: [length, index, value, index, value, ...] in ascending order of the index. */
  sparse: 7,
  /** [name, message or undefined, stack or undefined], plus the cause if there is one. */
  error: 8,
  /** The primitive inside a Number, String, Boolean or BigInt object. */
  boxed: 9,
  /** The bytes of an ArrayBuffer. A Buffer is MessagePack's own bin. */
  arrayBuffer: 10,
  /** The first of the view types; see binary-view.ts. */
  firstView: 32,
} as const;

export const LAST_VIEW: number = EXTENSION.firstView + VIEW_TYPE_COUNT - 1;
