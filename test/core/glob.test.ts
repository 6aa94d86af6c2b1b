import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvalidKeyError } from "../../src/core/errors.ts";
import { glob, literalPrefix } from "../../src/core/glob.ts";

describe("glob", () => {
  it.each([
    ["*", "", true],
    ["*", "anything", true],
    ["user:*", "user:1", true],
    ["user:*", "users:1", false],
    ["user:?", "user:1", true],
    ["user:?", "user:12", false],
    ["*:name", "user:1:name", true],
    ["a*b*c", "axxbyyc", true],
    ["a*b*c", "axxbyy", false],
    ["[abc]x", "bx", true],
    ["[a-c]x", "dx", false],
    ["[c-a]x", "bx", true],
    ["[^a]x", "bx", true],
    ["[^a]x", "ax", false],
    ["[]]", "]", true],
    ["[a\\]]", "]", true],
    ["\\*", "*", true],
    ["\\*", "x", false],
    ["a\\", "a\\", true],
    ["a.c", "abc", false],
    ["(a+)+$", "aaa", false],
  ])("%s on %s is %s", (pattern, key, expected) => {
    expect(glob(pattern)(key)).toBe(expected);
  });

  it("matches a literal pattern only to itself, whatever characters it holds", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.string(), (text, other) => {
        const literal = glob(text.replace(/[*?[\]\\^]/g, "\\$&"));
        expect(literal(text)).toBe(true);
        expect(literal(other)).toBe(other === text);
      }),
    );
  });

  it("takes no more than pattern times key steps on hostile input", () => {
    const hostile = glob(`${"*a".repeat(200)}b`);
    expect(hostile("a".repeat(20_000))).toBe(false);
  });

  it("refuses an empty pattern, another type and an open class, and says where", () => {
    expect(() => glob("")).toThrow(InvalidKeyError);
    expect(() => glob(5 as never)).toThrow(InvalidKeyError);
    expect(() => glob("user:[ab")).toThrow(/\[ at position 5/);
  });

  it("knows the literal beginning that a store can narrow its scan by", () => {
    expect(literalPrefix("user:*")).toBe("user:");
    expect(literalPrefix("*")).toBe("");
    expect(literalPrefix("us[e]r")).toBe("us");
  });
});
