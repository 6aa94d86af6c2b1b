import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { foldText } from "../../src/search/folded-text.ts";
import { codePoint } from "../support/code-point.ts";

const folded = (text: string): string => String.fromCodePoint(...foldText(text).points);

function everyCharacter(): string[] {
  const isSurrogate = (point: number): boolean => point >= 0xd800 && point <= 0xdfff;
  const points = Array.from({ length: 0x110000 }, (_, point) => point);
  return points.filter((point) => !isSurrogate(point)).map((point) => String.fromCodePoint(point));
}

describe("foldText", () => {
  it.each([
    ["ABC", "abc"],
    ["Straße", "strasse"],
    ["STRASSE", "strasse"],
    ["ẞ", "ss"],
    ["İ", "i\u0307"],
    ["ı", "i"],
    ["ΣΊΣΥΦΟΣ", "σίσυφοσ"],
    ["Σίσυφος", "σίσυφοσ"],
    ["e\u0301", "é"],
    ["É", "é"],
    ["ﬁ", "fi"],
    ["ＡＢＣ１", "abc1"],
    ["①", "1"],
    ["ｶﾞ", "ガ"],
    ["ㅎㅏㄴ", "하ᄂ"],
    ["\u1112\u1161\u11ab", "한"],
    ["❤\ufe0f", "❤"],
    ["so\u00adft", "soft"],
    ["👩\u200d🚀", "👩🚀"],
    ["\ud800", "\ud800"],
  ])("takes %j for %j", (text, expected) => {
    expect(folded(text)).toBe(expected);
  });

  it("gives the same result for a text in any normal form and any case", () => {
    const text = fc.string({ unit: fc.constantFrom(..."aÅéñßΣσΐİi한글ガ가ﬁ①"), maxLength: 12 });
    fc.assert(
      fc.property(text, (sample) => {
        for (const form of ["NFC", "NFD", "NFKC", "NFKD"])
          expect(folded(sample.normalize(form))).toBe(folded(sample));
        expect(folded(sample.toLowerCase())).toBe(folded(sample));
      }),
    );
  });

  it("maps every character and its upper and lower case to one form, and is idempotent", () => {
    const changing = everyCharacter().filter((character) => /[\p{Cased}\p{CWKCF}]/u.test(character));
    expect(changing.length).toBeGreaterThan(10_000);
    const strays = changing.filter((character) => {
      const once = folded(character);
      return [character.toUpperCase(), character.toLowerCase(), once].some((form) => folded(form) !== once);
    });
    expect(strays).toEqual([]);
  });

  it("cuts only where normalising does not reach across", () => {
    // A piece must not begin with a character that can merge with the end of the previous piece.
    const merges = /^[\p{M}\u1160-\u11ff]/u;
    const strays = everyCharacter().filter(
      (character) =>
        merges.test(character.normalize("NFKD")) &&
        foldText(`a${character}`).starts.some((start) => start > 0),
    );
    expect(strays).toEqual([]);
  });

  it("reports where each character came from", () => {
    const { points, starts, ends } = foldText("aße\u0301👩🚀");
    expect(String.fromCodePoint(...points)).toBe("asse\u0301👩🚀".normalize("NFC"));
    expect(starts).toEqual([0, 1, 1, 2, 4, 6]);
    expect(ends).toEqual([1, 2, 2, 4, 6, 8]);
  });

  it("gives ranges that cover the text in order", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), (text) => {
        const { starts, ends } = foldText(text);
        expect(starts).toEqual(starts.toSorted((a, b) => a - b));
        expect(starts.every((start, i) => start < ends[i]! && ends[i]! <= text.length)).toBe(true);
      }),
    );
  });
});
