// The format byte of a payload: how the value was serialized (low half) and compressed (high half).
import { CodecError } from "../core/errors.ts";
import type { CompressionAlgorithm } from "./compression.ts";

export type Serialization = "msgpack" | "json";

// The positions are what is stored: append only.
const SERIALIZATIONS: readonly Serialization[] = ["msgpack", "json"];
const COMPRESSIONS: readonly (CompressionAlgorithm | "none")[] = ["none", "gzip", "brotli", "zstd"];

export interface PayloadFormat {
  readonly serialization: Serialization;
  readonly compression: CompressionAlgorithm | "none";
}

export function formatByte(format: PayloadFormat): number {
  return SERIALIZATIONS.indexOf(format.serialization) | (COMPRESSIONS.indexOf(format.compression) << 4);
}

export const PLAIN_MSGPACK = formatByte({ serialization: "msgpack", compression: "none" });

/** Throws CodecError for a format that this version does not know. */
export function readFormat(byte: number): PayloadFormat {
  const serialization = SERIALIZATIONS[byte & 0x0f];
  const compression = COMPRESSIONS[byte >> 4];
  if (serialization === undefined || compression === undefined) {
    throw new CodecError("FRAME_VERSION", `Payload format ${byte} is not known to this version of xcache.`);
  }
  return { serialization, compression };
}
