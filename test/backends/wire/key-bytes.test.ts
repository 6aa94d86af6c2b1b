// Any string is a key: it is restored exactly, and no two strings share their bytes.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyArgument, keyOfBytes } from "../../../src/backends/wire/key-bytes.ts";

const bytesOf = (key: string): Buffer => Buffer.from(keyArgument(key) as string);

/** Strings of any code units, rich in surrogates, replacement characters and their byte patterns. */
const anyString = fc.oneof(
  fc.string(),
  fc.string({ unit: "grapheme" }),
  fc
    .array(
      fc.oneof(
        fc.nat({ max: 0xffff }),
        fc.integer({ min: 0xd800, max: 0xdfff }),
        fc.constantFrom(0xfffd, 0xed, 0xa0, 0x80, 0xd7ff, 0xe000, 0x41, 0),
      ),
      { maxLength: 12 },
    )
    .map((units) => String.fromCharCode(...units)),
);

describe("a key", () => {
  test("is restored from its bytes exactly", () => {
    fc.assert(
      fc.property(anyString, (key) => {
        expect(keyOfBytes(bytesOf(key))).toBe(key);
      }),
      { numRuns: 3_000 },
    );
  });

  test("has distinct bytes", () => {
    fc.assert(
      fc.property(anyString, anyString, (one, other) => {
        expect(bytesOf(one).equals(bytesOf(other))).toBe(one === other);
      }),
      { numRuns: 2_000 },
    );
  });

  test("of every single code unit is restored, and no two share their bytes", () => {
    const seen = new Set<string>();
    const wrong: number[] = [];
    for (let unit = 0; unit <= 0xffff; unit++) {
      const key = String.fromCharCode(unit);
      const bytes = bytesOf(key);
      if (keyOfBytes(bytes) !== key) wrong.push(unit);
      seen.add(bytes.toString("latin1"));
    }
    expect(wrong).toEqual([]);
    expect(seen.size).toBe(0x10000);
  });

  test("that is well-formed text is sent as UTF-8", () => {
    for (const key of ["", "plain", "k\u00e9y", "\u{1f600}", "\ufffd", "a\0b"])
      expect(keyArgument(key)).toBe(key);
  });
});

describe("a surrogate", () => {
  test("that is unpaired takes three bytes and leaves its neighbours unchanged", () => {
    expect(bytesOf("a\ud800b").toString("hex")).toBe("61eda08062");
    expect(bytesOf("\udfff").toString("hex")).toBe("edbfbf");
    expect(bytesOf("\ud83d\ud83d\ude00").toString("hex")).toBe("eda0bdf09f9880");
    expect(bytesOf("\ude00\ud83d").toString("hex")).toBe("edb880eda0bd");
  });

  test("is distinguished from an adjacent replacement character", () => {
    for (const key of [
      "\ufffd\ud800",
      "\ud800\ufffd",
      "\ufffd",
      "\ufffd\ufffd\ufffd",
      "\ud800",
      "\udc00\ufffd\ud800",
    ])
      expect(keyOfBytes(bytesOf(key))).toBe(key);
  });
});

test("bytes that are no key of ours are read as some text, never with an error", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
      expect(typeof keyOfBytes(Buffer.from(bytes))).toBe("string");
    }),
  );
  for (const cut of [[0xed], [0xed, 0xa0], [0x61, 0xed, 0xa0]])
    expect(keyOfBytes(Buffer.from(cut))).toContain("\ufffd");
});
