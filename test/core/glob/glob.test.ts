import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { InvalidKeyError } from "../../../src/core/errors.ts";
import { glob, literalPrefix } from "../../../src/core/glob/glob.ts";

/** Whether the pieces of a pattern match: a table of which beginnings match which. */
function matchesByDefinition(pieces: readonly string[], text: string): boolean {
  let ends = new Set([0]);
  for (const piece of pieces) {
    const next = new Set<number>();
    for (const at of ends) {
      if (piece === "*") for (let end = at; end <= text.length; end++) next.add(end);
      else if (at < text.length && accepts(piece, text[at] as string)) next.add(at + 1);
    }
    ends = next;
  }
  return ends.has(text.length);
}

function accepts(piece: string, character: string): boolean {
  if (piece === "?") return true;
  if (piece === "[^b]") return character !== "b";
  if (piece.startsWith("[")) return character === "a" || character === "b";
  return piece.at(-1) === character;
}

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

  it("agrees with the definition, however long the runs between the stars are", () => {
    const piece = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom("a", "b", "\\*", "\\a") },
      { weight: 2, arbitrary: fc.constantFrom("?", "[ab]", "[^b]", "[a-c]") },
      { weight: 1, arbitrary: fc.constant("*") },
    );
    const pattern = fc.array(piece, { minLength: 1, maxLength: 90, size: "max" });
    const key = fc.array(fc.constantFrom("a", "a", "a", "b", "*"), { maxLength: 300, size: "max" });
    fc.assert(
      fc.property(pattern, key, (pieces, characters) => {
        const text = characters.join("");
        expect(glob(pieces.join(""))(text)).toBe(matchesByDefinition(pieces, text));
      }),
    );
  });

  it("finds long runs in long keys at every place, whatever they are made of", () => {
    for (const length of [31, 32, 33, 64, 65, 200]) {
      const text = Array.from({ length }, (_, at) => String.fromCharCode(97 + ((at * at) % 26))).join("");
      for (const run of [text, text.replace("b", "?"), text.replaceAll("a", "[^b]"), `?${text.slice(1)}`]) {
        for (const at of [0, 1, 31, 32, 499]) {
          const key = `${"-".repeat(at)}${text}${"-".repeat(499 - at)}`;
          expect(glob(`*${run}*`)(key)).toBe(true);
          expect(glob(`*${run}x*`)(key)).toBe(false);
          expect(glob(`*${run}*`)(key.replace(text, `${text.slice(0, 20)}#${text.slice(21)}`))).toBe(false);
        }
      }
    }
  });

  it.each([
    ["a long literal", `*${"a".repeat(500)}b*`],
    ["a long literal with its odd character first", `*b${"a".repeat(500)}*`],
    ["question marks", `*${"?".repeat(300)}${"a".repeat(300)}b*`],
    ["classes", `*${"[a-c]".repeat(150)}b*`],
    ["many stars", `${"*a?".repeat(200)}b`],
  ])("looks at every character of a hostile key about once: %s", (_, pattern) => {
    const matches = glob(pattern);
    const key = "a".repeat(5_000);
    const looks = vi.spyOn(String.prototype, "charCodeAt");
    const result = matches(key);
    const count = looks.mock.calls.length;
    looks.mockRestore();
    expect(result).toBe(false);
    expect(count).toBeLessThan(3 * key.length);
  });

  it("takes a pattern of 1,024 characters and refuses a longer one, naming the limit", () => {
    expect(glob("a".repeat(1_024))("a".repeat(1_024))).toBe(true);
    for (const pattern of ["a".repeat(1_025), `*${"a".repeat(32_000)}b`]) {
      expect(() => glob(pattern)).toThrow(InvalidKeyError);
      expect(() => glob(pattern)).toThrow(`pattern must be at most 1024 characters, got ${pattern.length}`);
    }
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
