// The slot of a key, checked against the wording of the cluster specification.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SLOTS, slotOf, tagForSlot } from "../../../../src/backends/kv/cluster/slots.ts";
import { keyArgument } from "../../../../src/backends/wire/key-bytes.ts";
import { codePoint } from "../../../support/code-point.ts";

/** CRC16 (XMODEM), bit by bit. */
function bitwiseCrc(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}

/** As specified, on the bytes that are sent. */
function referenceSlot(key: string): number {
  const bytes = Buffer.from(keyArgument(key) as string);
  const open = bytes.indexOf("{");
  const close = open < 0 ? -1 : bytes.indexOf("}", open + 1);
  return bitwiseCrc(close > open + 1 ? bytes.subarray(open + 1, close) : bytes) % 16_384;
}

const part = fc.oneof(
  fc.string({ unit: codePoint }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom(
    "{",
    "}",
    "{}",
    "{a}",
    "}{",
    "\ud83d",
    "\ude00",
    "\u{1f600}",
    "é",
    "ﬁ",
    "\x7f",
    "~",
    "|",
    "z",
  ),
);
const anyKey = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(""));

describe("slotOf", () => {
  test("agrees with the check value of CRC16/XMODEM", () => {
    expect(slotOf("123456789")).toBe(0x31c3);
  });

  test.each([
    ["foo", 12182],
    ["{user1000}.following", 3443],
    ["{user1000}.followers", 3443],
    ["user1000", 3443],
    ["foo{}{bar}", 8363],
    ["{bar", 4015],
    ["foo{{bar}}zap", 4015],
    ["bar", 5061],
    ["foo{bar}{zap}", 5061],
  ])("of %s is %i, as on a server", (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });

  test("equals that of the reference, whatever the key contains", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        expect(slotOf(key)).toBe(referenceSlot(key));
      }),
      { numRuns: 2_000 },
    );
  });

  test("distinguishes lone surrogates, which UTF-8 would not", () => {
    expect(slotOf("\ud800")).not.toBe(slotOf("\udfff"));
    expect(slotOf("a{\ud800}b")).toBe(slotOf("\ud800"));
    expect(slotOf("\ud83d{\ude00}")).toBe(slotOf("\ude00"));
  });
});

describe("tagForSlot", () => {
  test("gives every slot three letters that hash to it, bare or as a hash tag", () => {
    for (let slot = 0; slot < SLOTS; slot += 61) {
      const tag = tagForSlot(slot);
      expect(tag).toMatch(/^[0-9A-Za-z]{3}$/);
      expect([slotOf(tag), slotOf(`app!x:server{${tag}}`)]).toEqual([slot, slot]);
    }
  });

  test.each([0, SLOTS - 1])("reaches slot %i", (slot) => {
    expect(slotOf(tagForSlot(slot))).toBe(slot);
  });

  test("rejects anything that is not a slot", () => {
    expect(() => tagForSlot(SLOTS)).toThrow(RangeError);
  });
});
