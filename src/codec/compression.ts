// Compression of payload bytes, and decompression that stops at the size limit.
import type { Transform } from "node:stream";
import { CodecError } from "../core/errors.ts";
import { nodeZlib } from "../core/lazy-builtin.ts";
import type { CompressionAlgorithm } from "./options.ts";

interface Unpacked {
  readonly buffer: Buffer;
  /** How many bytes of the input zlib consumed. */
  readonly engine: { readonly bytesWritten: number };
}

interface Method {
  pack(bytes: Uint8Array): Buffer;
  unpack(bytes: Uint8Array, maxOutputLength: number): Unpacked;
  /** A stream that also unpacks a part of a payload. */
  unpacking(): Transform;
}

type ZlibCall = (bytes: Uint8Array, options: object) => unknown;
type Methods = Readonly<Record<CompressionAlgorithm, Method | undefined>>;

// Fast settings: a cache that compresses more slowly than the value loads is useless. brotli's default quality (11) is
// hundreds of times slower than 1 for a few per cent of size.
function allMethods(): Methods {
  const zlib = nodeZlib();
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT, Z_BEST_SPEED } = zlib.constants;
  // Missing in older Nodes, and in their types.
  const { zstdCompressSync, zstdDecompressSync, createZstdDecompress, constants } = zlib as unknown as {
    zstdCompressSync?: ZlibCall;
    zstdDecompressSync?: ZlibCall;
    createZstdDecompress: (options: object) => Transform;
    constants: { readonly ZSTD_e_flush: number };
  };
  return {
    brotli: {
      pack: (bytes) =>
        zlib.brotliCompressSync(bytes, {
          params: { [BROTLI_PARAM_QUALITY]: 1, [BROTLI_PARAM_SIZE_HINT]: bytes.length },
        }),
      unpack: (bytes, maxOutputLength) => unpackWith(zlib.brotliDecompressSync, bytes, maxOutputLength),
      unpacking: () => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
    },
    gzip: {
      pack: (bytes) => zlib.gzipSync(bytes, { level: Z_BEST_SPEED }),
      unpack: (bytes, maxOutputLength) => unpackWith(zlib.gunzipSync, bytes, maxOutputLength),
      unpacking: () => zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH }),
    },
    zstd:
      zstdCompressSync === undefined || zstdDecompressSync === undefined
        ? undefined
        : {
            pack: (bytes) => zstdCompressSync(bytes, {}) as Buffer,
            unpack: (bytes, maxOutputLength) => unpackWith(zstdDecompressSync, bytes, maxOutputLength),
            unpacking: () => createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
          },
  };
}

let known: Methods | undefined;

function unpackWith(call: ZlibCall, bytes: Uint8Array, maxOutputLength: number): Unpacked {
  return call(bytes, { maxOutputLength, info: true }) as Unpacked;
}

export function compress(algorithm: CompressionAlgorithm, bytes: Uint8Array): Buffer {
  return methodOf(algorithm).pack(bytes);
}

/** Throws CodecError for damaged bytes, and if the output would exceed `maxBytes`. */
export function decompress(algorithm: CompressionAlgorithm, bytes: Uint8Array, maxBytes: number): Buffer {
  const method = methodOf(algorithm);
  let unpacked: Unpacked;
  try {
    unpacked = method.unpack(bytes, maxBytes);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      throw new CodecError(
        "VALUE_TOO_LARGE",
        `A ${algorithm} payload of ${bytes.length} bytes decompresses to more than ${maxBytes}.`,
        {
          cause,
        },
      );
    }
    throw new CodecError(
      "FRAME_INVALID",
      `A ${algorithm} payload of ${bytes.length} bytes cannot be decompressed.`,
      { cause },
    );
  }
  if (unpacked.engine.bytesWritten !== bytes.length) {
    throw new CodecError("FRAME_INVALID", `A ${algorithm} payload has bytes after its end.`);
  }
  return unpacked.buffer;
}

/**
 * The first `most` bytes or a little more; fewer if the input ends before, which `isWhole` says is all of it. A payload of a few bytes may unpack to any length,
 * so it is unpacked in pieces. Throws CodecError for damaged bytes.
 */
export async function decompressedBeginning(
  algorithm: CompressionAlgorithm,
  bytes: Uint8Array,
  isWhole: boolean,
  most: number,
): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }> {
  const stream = methodOf(algorithm).unpacking();
  const parts: Buffer[] = [];
  let length = 0;
  stream.end(bytes);
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length >= most) return { bytes: Buffer.concat(parts), isWhole: false };
    }
  } catch (cause) {
    // An input that ends in its middle is no damage.
    if (isWhole || length === 0) {
      throw new CodecError("FRAME_INVALID", `A ${algorithm} payload cannot be decompressed.`, { cause });
    }
  }
  return { bytes: Buffer.concat(parts), isWhole };
}

function methodOf(algorithm: CompressionAlgorithm): Method {
  known ??= allMethods();
  const method = known[algorithm];
  if (method === undefined) {
    throw new CodecError(
      "FRAME_VERSION",
      `A payload is compressed with ${algorithm}, which the node:zlib of Node ${process.versions.node} does not have.`,
      { hint: "Run Node 22.15, 23.8 or later here, or have the writers use brotli." },
    );
  }
  return method;
}
