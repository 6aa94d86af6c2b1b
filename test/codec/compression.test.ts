import * as zlib from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import { ALGORITHMS, isAvailable } from "../../src/codec/options.ts";
import { CodecError } from "../../src/core/errors.ts";
import { anyValue } from "./arbitrary.ts";
import { difference } from "./exact.ts";

const plain = createCodec();
const FORMAT = { gzip: 0x10, brotli: 0x20, zstd: 0x30 } as const;

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError);
    return (error as CodecError).code;
  }
  return "nothing thrown";
}

describe.each(ALGORITHMS.filter(isAvailable))("%s", (algorithm) => {
  const codec = createCodec({ compression: { algorithm, thresholdBytes: 100 } });

  test("any value is restored exactly", () => {
    const all = createCodec({ compression: { algorithm, thresholdBytes: 0 } });
    fc.assert(
      fc.property(anyValue, (value) => {
        expect(difference(all.decode(all.encode(value)), value)).toBeUndefined();
      }),
      { numRuns: 100 },
    );
  });

  test("payloads from the threshold on are compressed, smaller ones are not", () => {
    expect(codec.encode("x".repeat(98)).format).toBe(FORMAT[algorithm]);
    expect(codec.encode("x".repeat(97)).format).toBe(0);
    expect(codec.encode("x".repeat(10_000)).bytes.length).toBeLessThan(200);
  });

  test("a payload that does not shrink is stored uncompressed", () => {
    const noise = Buffer.alloc(400);
    for (let i = 0, state = 1; i < noise.length; i++) {
      state = (state * 48_271) % 2_147_483_647;
      noise[i] = state;
    }
    const payload = codec.encode(noise);
    expect(payload).toEqual(plain.encode(noise));
    expect(codec.decode(payload)).toEqual(noise);
  });

  test("a codec without compression reads it", () => {
    expect(plain.decode(codec.encode("x".repeat(1000)))).toBe("x".repeat(1000));
  });

  test("a decompression bomb is rejected at the size limit", () => {
    const bomb = createCodec({ compression: { algorithm } }).encode(Buffer.alloc(32 * 1024 * 1024));
    expect(bomb.bytes.length).toBeLessThan(256 * 1024);
    const careful = createCodec({ limits: { maxBytes: 1024 * 1024 } });
    expect(codeOf(() => careful.decode(bomb))).toBe("VALUE_TOO_LARGE");
  });

  test("damaged, truncated and extended bytes are rejected", () => {
    const { format, bytes } = codec.encode({ text: "some text, and some text again. ".repeat(20) });
    const changed = Buffer.from(bytes);
    changed[bytes.length >> 1]! ^= 0x55;
    const cut = bytes.subarray(0, bytes.length - 3);
    const longer = Buffer.concat([bytes, Buffer.from("more")]);
    expect(codeOf(() => codec.decode({ format, bytes: cut }))).toBe("FRAME_INVALID");
    expect(codeOf(() => codec.decode({ format, bytes: longer }))).toBe("FRAME_INVALID");
    expect(codeOf(() => codec.decode({ format, bytes: Buffer.alloc(0) }))).toBe("FRAME_INVALID");
    // Without a checksum a changed byte may go unnoticed, but the result is always a value or a rejection.
    expect(["FRAME_INVALID", "VALUE_TOO_LARGE", "FRAME_VERSION", "nothing thrown"]).toContain(
      codeOf(() => codec.decode({ format, bytes: changed })),
    );
  });
});

test.runIf(!("zstdCompressSync" in zlib))(
  "zstd on a Node without it is reported, in the options and in a payload",
  () => {
    expect(() => createCodec({ compression: { algorithm: "zstd" } })).toThrow(
      /zstd is not in the node:zlib of Node/,
    );
    expect(codeOf(() => plain.decode({ format: FORMAT.zstd, bytes: Buffer.alloc(8) }))).toBe("FRAME_VERSION");
    expect(() => plain.decode({ format: FORMAT.zstd, bytes: Buffer.alloc(8) })).toThrow(/does not have/);
  },
);

test("a payload format of a later version is rejected as such", () => {
  expect(codeOf(() => plain.decode({ format: 0x02, bytes: Buffer.alloc(1) }))).toBe("FRAME_VERSION");
  expect(codeOf(() => plain.decode({ format: 0xf0, bytes: Buffer.alloc(1) }))).toBe("FRAME_VERSION");
});
