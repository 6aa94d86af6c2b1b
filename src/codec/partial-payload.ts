// Decodes the beginning of a payload: whole parts as they are, and the part in which the bytes end as far as it goes.
import type { Beginning } from "../core/codec.ts";
import { CodecError } from "../core/errors.ts";
import type { Payload } from "../core/record.ts";
import { damaged } from "./byte-reader.ts";
import { decompressedBeginning } from "./compression.ts";
import { decode } from "./decode.ts";
import { jsonBeginning } from "./json-beginning.ts";
import { parseJson } from "./json-text.ts";
import { msgpackBeginning } from "./msgpack-beginning.ts";
import type { CodecLimits } from "./options.ts";
import { readFormat } from "./payload-format.ts";

/** See Codec.decodeBeginning. Throws CodecError. */
export async function payloadBeginning(
  { format, bytes: given }: Payload,
  isWhole: boolean,
  most: number,
  limits: CodecLimits,
): Promise<Beginning> {
  const { serialization, compression } = readFormat(format);
  const unpacked =
    compression === "none"
      ? { bytes: given, isWhole }
      : await decompressedBeginning(compression, given, isWhole, most);
  const { bytes } = unpacked;
  try {
    if (unpacked.isWhole) {
      const value = serialization === "json" ? parseJson(bytes, limits.maxDepth) : decode(bytes, limits);
      return { value, isWhole: true };
    }
    const beginning = serialization === "json" ? jsonBeginning(bytes) : msgpackBeginning(bytes, limits);
    return { ...beginning, isWhole: false };
  } catch (thrown) {
    throw thrown instanceof CodecError ? thrown : damaged("it cannot be read", thrown);
  }
}
