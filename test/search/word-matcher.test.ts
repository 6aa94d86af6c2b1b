import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AsciiText } from "../../src/search/ascii-text.ts";
import { WordMatcher } from "../../src/search/word-matcher.ts";
import { closestPart, infixDistance } from "./naive-distance.ts";

const pointsOf = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0)!);
const ascii = (text: string): AsciiText => {
  const loaded = new AsciiText();
  expect(loaded.load(text)).toBe(true);
  return loaded;
};

function fed(plain: string, ...parts: string[]): WordMatcher {
  const matcher = new WordMatcher(pointsOf(plain));
  // Earlier input no longer counts.
  matcher.feed(pointsOf(plain));
  matcher.begin();
  for (const part of parts) matcher.feed(pointsOf(part));
  return matcher;
}

/** Few letters, so that words nearly match; words of one to eight blocks. */
const letters = fc.constantFrom(..."aab-");
const word = fc.oneof(
  fc.string({ unit: letters, minLength: 1, maxLength: 6 }),
  fc.string({ unit: letters, minLength: 30, maxLength: 35 }),
  fc.string({ unit: letters, minLength: 60, maxLength: 250 }),
);
const text = fc.string({ unit: fc.constantFrom(..."aabcé-"), maxLength: 80 });

/** A text that holds the word with a few changes, so that matches cross the borders of blocks. */
const wordAndText = fc
  .tuple(
    word,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom("insert", "delete", "swap")), { maxLength: 4 }),
    text,
    text,
  )
  .map(([plain, changes, before, after]) => {
    const changed = [...plain];
    for (const [place, kind] of changes) {
      const at = place % (changed.length + 1);
      if (kind === "insert") changed.splice(at, 0, "c");
      if (kind === "delete") changed.splice(at, 1);
      if (kind === "swap") changed.splice(at, 2, ...changed.slice(at, at + 2).reverse());
    }
    return [plain, before + changed.join("") + after] as const;
  });

describe("WordMatcher", () => {
  it("finds the distance that the edit table gives, in any number of blocks", () => {
    fc.assert(
      fc.property(fc.oneof(fc.tuple(word, text), wordAndText), ([plain, inside]) => {
        expect(fed(plain, inside).distance).toBe(infixDistance(pointsOf(plain), pointsOf(inside)));
      }),
      { numRuns: 600 },
    );
  });

  it("finds the same in a text that arrives in parts, wherever it is split", () => {
    fc.assert(
      fc.property(wordAndText, fc.nat(), fc.nat(), ([plain, inside], one, other) => {
        const [first, second] = [one % (inside.length + 1), other % (inside.length + 1)].sort(
          (a, b) => a - b,
        );
        const parts = [inside.slice(0, first), inside.slice(first, second), inside.slice(second)];
        const [whole, cut] = [fed(plain, inside), fed(plain, ...parts)];
        expect(cut.distance).toBe(whole.distance);
        expect(cut.locate(pointsOf(inside))).toEqual(whole.locate(pointsOf(inside)));
      }),
      { numRuns: 300 },
    );
  });

  it("finds the same distance in ASCII, whatever the case of its letters", () => {
    fc.assert(
      fc.property(fc.oneof(fc.tuple(word, text), wordAndText), ([plain, inside]) => {
        const plainText = inside.replaceAll("é", "e");
        const matcher = new WordMatcher(pointsOf(plain));
        const expected = infixDistance(pointsOf(plain), pointsOf(plainText));
        expect(matcher.distanceInAscii(ascii(plainText))).toBe(expected);
        expect(matcher.distanceInAscii(ascii(plainText.toUpperCase()))).toBe(expected);
        expect(matcher.leastDistance(ascii(plainText).kinds)).toBeLessThanOrEqual(expected);
      }),
      { numRuns: 600 },
    );
  });

  it("locates the closest part, one that ends and begins like the word if there is one", () => {
    fc.assert(
      fc.property(fc.oneof(fc.tuple(word, text), wordAndText), ([plain, inside]) => {
        const located = fed(plain, inside).locate(pointsOf(inside));
        expect(located).toEqual(closestPart(pointsOf(plain), pointsOf(inside)));
      }),
      { numRuns: 300 },
    );
  });

  it("locates a part that extends to the end that was found", () => {
    expect(fed("aab", "acccbc").locate(pointsOf("acccbc"))).toEqual({ start: 4, end: 5 });
  });

  it("counts an insertion, a deletion, a replacement and a swap as one edit each, at every place", () => {
    const plain = "abcdefghijklmnopqrstuvwxyz0123456789";
    const matcher = new WordMatcher(pointsOf(plain));
    for (let at = 1; at < plain.length - 1; at++) {
      for (const changed of [
        `${plain.slice(0, at)}#${plain.slice(at)}`,
        plain.slice(0, at) + plain.slice(at + 1),
        `${plain.slice(0, at)}#${plain.slice(at + 1)}`,
        plain.slice(0, at) + plain[at + 1] + plain[at] + plain.slice(at + 2),
      ]) {
        expect([changed, matcher.distanceInAscii(ascii(`:${changed}:`))]).toEqual([changed, 1]);
      }
    }
  });

  it("knows a bound that counts every character a text lacks", () => {
    const matcher = new WordMatcher(pointsOf("aab1é"));
    expect(matcher.leastDistance(ascii("aab1").kinds)).toBe(1);
    expect(matcher.leastDistance(ascii("b1").kinds)).toBe(3);
    expect(matcher.leastDistance(ascii("A").kinds)).toBe(3);
  });
});

describe("AsciiText", () => {
  it("refuses texts with other characters and grows with long ones", () => {
    const loaded = new AsciiText();
    expect(loaded.load("naïve")).toBe(false);
    expect(loaded.load("\u0141")).toBe(false);
    expect(loaded.load("x".repeat(5000))).toBe(true);
    expect(loaded.length).toBe(5000);
  });
});
