import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { InvalidKeyError } from "../../../src/core/errors.ts";
import { glob, literalPrefix } from "../../../src/core/glob/glob.ts";

/** Whether the pieces of a pattern match: a table of matching prefixes. */
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

  const FAMILY = "\u{1F468}\u200d\u{1F469}\u200d\u{1F467}";
  const FLAG = "\u{1F1E9}\u{1F1EA}";
  const THUMB = "\u{1F44D}\u{1F3FD}";
  const ACUTE = "e\u0301";

  it.each([
    ["a rocket", "\u{1F680}"],
    ["a family", FAMILY],
    ["a flag", FLAG],
    ["a thumb with a skin tone", THUMB],
    ["a letter with a combining mark", ACUTE],
    ["a Hangul syllable of jamo", "\u1100\u1161\u11a8"],
    ["a keycap", "1\ufe0f\u20e3"],
    ["a Devanagari syllable", "\u0928\u093f"],
    ["a Thai vowel", "\u0e01\u0e33"],
    ["a line break of two", "\r\n"],
    ["a letter of one unit", "\u00e9"],
    ["a Cyrillic letter", "\u0436"],
  ])("treats %s as one character, wherever it appears", (_, character) => {
    for (const [pattern, key] of [
      ["?", character],
      ["a?b", `a${character}b`],
      ["??", `${character}${character}`],
      ["*?", character],
      ["?*", `${character}x`],
      ["*a?b*", `xx${character}a${character}b${character}`],
      ["*?b?*c", `${character}b${character}${character}c`],
      ["[^x]", character],
      ["a[^x]*", `a${character}`],
    ] as const)
      expect(glob(pattern)(key), pattern).toBe(true);
    for (const [pattern, key] of [
      ["??", character],
      ["a??b", `a${character}b`],
      ["?", `${character}${character}`],
      ["???*", `${character}${character}`],
      ["*??", character],
      ["[x]", character],
      ["[^x][^x]", character],
    ] as const)
      expect(glob(pattern)(key), pattern).toBe(false);
  });

  it.each([
    [`[${FLAG}${THUMB}]x`, `${THUMB}x`, true],
    [`[${FLAG}${THUMB}]x`, `\u{1F44D}x`, false],
    [`[^${FLAG}]x`, `${FLAG}x`, false],
    [`[^${FLAG}]x`, `${THUMB}x`, true],
    ["[\u{1F600}-\u{1F64F}]", "\u{1F603}", true],
    ["[\u{1F600}-\u{1F64F}]", "\u{1F680}", false],
    ["[\u0430-\u044f]", "\u0436", true],
    [`[${ACUTE}]`, ACUTE, true],
    [`[${ACUTE}]`, "e", false],
    ["[e]", ACUTE, false],
    [`[a-${FLAG}]`, "-", true],
  ])("compares whole characters with a class: %s on %s is %s", (pattern, key, expected) => {
    expect(glob(pattern)(key)).toBe(expected);
  });

  it("never narrows a literal prefix or suffix: every key that starts or ends with it matches", () => {
    for (const key of ["user:\u0301x", "user:\u200dx", `user:${FAMILY}`, "user:\n"]) {
      expect(glob("user:*")(key)).toBe(true);
      expect(glob("user:*?")(`${key}x`)).toBe(true);
      expect(glob(`?*${key.slice(5)}`)(`x${key}`)).toBe(true);
    }
  });

  it("agrees with the definition on characters of several code units", () => {
    const characters = ["a", "b", ACUTE, FLAG, THUMB, FAMILY, "\u{1F680}"];
    const piece = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...characters) },
      { weight: 3, arbitrary: fc.constantFrom("?", `[${FLAG}ab]`, "[^b]") },
      { weight: 1, arbitrary: fc.constant("*") },
    );
    // Adjacent flags are paired from the left, so a part of one has no meaning of its own.
    const key = fc.array(fc.constantFrom(...characters), { maxLength: 120, size: "max" });
    const takes = (one: string, character: string): boolean => {
      if (one === "?") return true;
      if (one === "[^b]") return character !== "b";
      return one.startsWith("[") ? [FLAG, "a", "b"].includes(character) : one === character;
    };
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 60, size: "max" }), key, (pieces, text) => {
        let ends = new Set([0]);
        for (const one of pieces) {
          const next = new Set<number>();
          for (const at of ends) {
            if (one === "*") for (let end = at; end <= text.length; end++) next.add(end);
            else if (at < text.length && takes(one, text[at]!)) next.add(at + 1);
          }
          ends = next;
        }
        // A literal is compared by code units: "a" also matches in front of a combining mark, so only keys without marks count here.
        if (pieces.some((one, at) => one === "*" && /^[ab\u{1F680}\u{1F44D}]/u.test(pieces[at + 1] ?? "")))
          return;
        expect(glob(pieces.join(""))(text.join(""))).toBe(ends.has(text.length));
      }),
    );
  });

  it("matches by code unit only where no two units form one character", () => {
    const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
    const wrong: string[] = [];
    for (let unit = 0; unit < 0xd800; unit++) {
      // Most are ideographs and syllables that stand for themselves.
      if (unit === 0x3400) unit = 0xa000;
      if (unit === 0xac00) unit = 0xd7a4;
      const text = `a${String.fromCharCode(unit)}a`;
      const characters = [...segmenter.segment(text)].length;
      if (!glob("?".repeat(characters))(text)) wrong.push(unit.toString(16));
    }
    expect(wrong).toEqual([]);
  });

  it("matches a literal pattern only to itself, whatever characters it contains", () => {
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

  it("finds long runs at every position of a long key, whatever they consist of", () => {
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
    ["question marks over characters of several units", `*${"?a".repeat(300)}b*`],
  ])("examines every character of a hostile key about once: %s", (_, pattern) => {
    const matches = glob(pattern);
    for (const key of ["a".repeat(5_000), `${"a".repeat(5_000)}\u0301`])
      expect(looksAt(matches, key), key.slice(-2)).toBeLessThan(3 * key.length);
  });

  /** How often a key that does not match is read. */
  function looksAt(matches: (key: string) => boolean, key: string): number {
    const looks = vi.spyOn(String.prototype, "charCodeAt");
    const result = matches(key);
    const count = looks.mock.calls.length;
    looks.mockRestore();
    expect(result).toBe(false);
    return count;
  }

  it("accepts a pattern of 1,024 characters and rejects a longer one, naming the limit", () => {
    expect(glob("a".repeat(1_024))("a".repeat(1_024))).toBe(true);
    for (const pattern of ["a".repeat(1_025), `*${"a".repeat(32_000)}b`]) {
      expect(() => glob(pattern)).toThrow(InvalidKeyError);
      expect(() => glob(pattern)).toThrow(`pattern must be at most 1024 characters, got ${pattern.length}`);
    }
  });

  it("rejects an empty pattern, another type and an open class, and names the position", () => {
    expect(() => glob("")).toThrow(InvalidKeyError);
    expect(() => glob(5 as never)).toThrow(InvalidKeyError);
    expect(() => glob("user:[ab")).toThrow(/\[ at position 5/);
  });

  it("knows the literal prefix that a store can narrow its scan by", () => {
    expect(literalPrefix("user:*")).toBe("user:");
    expect(literalPrefix("*")).toBe("");
    expect(literalPrefix("us[e]r")).toBe("us");
  });
});
