// Keys on the wire: exact, distinct, never longer than memcached accepts, and never able to end a command.
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ItemKeys, isHashed, LONGEST_ITEM_KEY } from "../../../src/backends/memcached/item-key.ts";
import { codePoint } from "../../support/code-point.ts";

const FINGERPRINT = Buffer.from("0123456789ab", "hex");
const keys = new ItemKeys(FINGERPRINT);

function textOf(key: string, by = keys): string {
  const out = Buffer.alloc(LONGEST_ITEM_KEY + 8, 0x7e);
  return out.toString("latin1", 0, by.write(out, 0, key));
}

const bytesIn = (text: string): Buffer => Buffer.from(text, "base64");

/** Strings of all kinds of code units, including lone surrogates. */
const anyKey = fc.oneof(
  fc.string({ unit: codePoint, minLength: 1, maxLength: 400 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: 100 })
    .map((units) => String.fromCharCode(...units)),
  fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 300 }),
);

describe("the text of a key", () => {
  it("is base64 of the server list's fingerprint and the key's bytes", () => {
    for (const key of ["a", "ab", "abc", "abcd", "x\r\nmn\r\n", "a b\0", "ä", "😀", "k".repeat(180)]) {
      expect(bytesIn(textOf(key))).toEqual(Buffer.concat([FINGERPRINT, Buffer.from(key)]));
    }
  });

  it("contains only base64 characters and fits, whatever the key contains", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const text = textOf(key);
        expect(text).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
        expect(text.length).toBeLessThanOrEqual(LONGEST_ITEM_KEY);
        expect(text.length % 4).toBe(0);
      }),
    );
  });

  it("differs for different keys", () => {
    fc.assert(
      fc.property(anyKey, anyKey, (one, other) => {
        expect(textOf(one) === textOf(other)).toBe(one === other);
      }),
    );
  });

  it("distinguishes lone surrogates from the replacement character", () => {
    const awkward = ["\ud800", "\ud801", "\udc00", "\ufffd", "a\ud800b", "\ud800\udc00", "\udc00\ud800"];
    expect(new Set(awkward.map((key) => textOf(key))).size).toBe(awkward.length);
  });

  it("is a 256-bit hash beyond 180 bytes, which no shorter key can be spelled like", () => {
    const long = "k".repeat(181);
    const hash = createHash("sha256").update(long).digest();
    expect([
      isHashed("k".repeat(180)),
      isHashed(long),
      isHashed("漢".repeat(60)),
      isHashed("漢".repeat(61)),
    ]).toEqual([false, true, false, true]);
    expect(bytesIn(textOf(long)).subarray(6)).toEqual(hash);
    expect(bytesIn(textOf(long)).subarray(0, 6)).not.toEqual(FINGERPRINT);
  });

  it("differs between server lists, except for notes about a server", () => {
    const others = new ItemKeys(Buffer.from("ba9876543210", "hex"));
    for (const key of ["a", "k".repeat(200), "p!n", "p:!x:server@h:1"]) {
      expect(textOf(key, others)).not.toBe(textOf(key));
    }
    for (const prefix of ["p", "p".repeat(200)]) {
      const note = `${prefix}!x:server@h:1`;
      expect(textOf(note, others)).toBe(textOf(note));
      expect(textOf(note)).not.toBe(textOf(`${note}1`));
    }
  });
});
