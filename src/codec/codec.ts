// The codec: MessagePack or JSON text, optionally compressed, within limits; and copies for the in-process tiers.
import { type Codec, PayloadSlice } from "../core/codec.ts";
import { CodecError } from "../core/errors.ts";
import type { Payload } from "../core/record.ts";
import { damaged } from "./byte-reader.ts";
import { compress, decompress } from "./compression.ts";
import { createCopier } from "./copier.ts";
import { copyChecked } from "./copy.ts";
import { decode } from "./decode.ts";
import { tooLarge } from "./descent.ts";
import { encode, encodePayload } from "./encode.ts";
import { isExactInJson, parseJson } from "./json-text.ts";
import { type CodecOptions, type CodecSettings, settingsOf } from "./options.ts";
import { payloadBeginning } from "./partial-payload.ts";
import { formatByte, PLAIN_MSGPACK, readFormat, type Serialization } from "./payload-format.ts";
import { refusalOf } from "./refusal.ts";

/** Throws ConfigError for invalid options, or for ones that this Node does not support. */
export function createCodec(options: CodecOptions = {}): Codec {
  const settings = settingsOf(options);
  const { limits } = settings;
  const isSliced = settings.slices && !settings.json && settings.compression === undefined;

  function serialize(value: unknown): { readonly serialization: Serialization; readonly bytes: Buffer } {
    try {
      if (!settings.json) return { serialization: "msgpack", bytes: encode(value, limits) };
      const plain = copyChecked(value, limits);
      if (!isExactInJson(plain)) return { serialization: "msgpack", bytes: encode(plain, limits) };
      const bytes = Buffer.from(JSON.stringify(plain), "utf8");
      if (bytes.length > limits.maxBytes) throw tooLarge(limits);
      return { serialization: "json", bytes };
    } catch (thrown) {
      throw refusalOf(value, limits, thrown);
    }
  }

  function slice(value: unknown): Payload {
    try {
      return encodePayload(value, limits, PLAIN_MSGPACK);
    } catch (thrown) {
      throw refusalOf(value, limits, thrown);
    }
  }

  return {
    ...createCopier(limits),
    encode(value) {
      if (isSliced) return slice(value);
      const { serialization, bytes } = serialize(value);
      return packed(serialization, bytes, settings.compression);
    },
    decode(payload) {
      try {
        if (payload.format === PLAIN_MSGPACK) return decodePlain(payload, limits);
        const { serialization, compression } = readFormat(payload.format);
        const given = payload.bytes;
        if (given.length > limits.maxBytes) throw tooLarge(limits);
        const bytes = compression === "none" ? given : decompress(compression, given, limits.maxBytes);
        return serialization === "json" ? parseJson(bytes, limits.maxDepth) : decode(bytes, limits);
      } catch (thrown) {
        throw thrown instanceof CodecError ? thrown : damaged("it cannot be read", thrown);
      }
    },
    decodeBeginning: (payload, isWhole, most) => payloadBeginning(payload, isWhole, most, limits),
  };
}

/** The most common format, decoded in place. */
function decodePlain(payload: Payload, limits: CodecSettings["limits"]): unknown {
  const part = payload instanceof PayloadSlice;
  const start = part ? payload.start : 0;
  const bytes = part ? payload.whole : payload.bytes;
  const end = part ? payload.end : bytes.length;
  if (end - start > limits.maxBytes) throw tooLarge(limits);
  return decode(bytes, limits, start, end);
}

function packed(
  serialization: Serialization,
  bytes: Buffer,
  compression: CodecSettings["compression"],
): Payload {
  if (compression !== undefined && bytes.length >= compression.thresholdBytes) {
    const { algorithm } = compression;
    const smaller = compress(algorithm, bytes);
    if (smaller.length < bytes.length) {
      return { format: formatByte({ serialization, compression: algorithm }), bytes: smaller };
    }
  }
  return { format: formatByte({ serialization, compression: "none" }), bytes };
}
