import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { foldText } from "../../src/search/folded-text.ts";

const folded = (text: string): string => String.fromCodePoint(...foldText(text).points);

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

  it("gives the same for a text in any normal form and any case", () => {
    const text = fc.string({ unit: fc.constantFrom(..."aÅéñßΣσΐİi한글ガ가ﬁ①"), maxLength: 12 });
    fc.assert(
      fc.property(text, (sample) => {
        for (const form of ["NFC", "NFD", "NFKC", "NFKD"]) expect(folded(sample.normalize(form))).toBe(folded(sample));
        expect(folded(sample.toLowerCase())).toBe(folded(sample));
      }),
    );
  });

  it("cuts only where normalising does not reach across", () => {
    // A piece must not begin with what can merge with the end of the piece before.
    const merges = /^[\p{M}\u1160-\u11ff]/u;
    const joined: string[] = [];
    for (let point = 0; point <= 0x10ffff; point++) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const character = String.fromCodePoint(point);
      if (merges.test(character.normalize("NFKD")) && foldText(`a${character}`).starts.some((start) => start > 0)) {
        joined.push(character);
      }
    }
    expect(joined).toEqual([]);
  });

  it("says where each character came from", () => {
    const { points, starts, ends } = foldText("aße\u0301👩🚀");
    expect(String.fromCodePoint(...points)).toBe("asse\u0301👩🚀".normalize("NFC"));
    expect(starts).toEqual([0, 1, 1, 2, 4, 6]);
    expect(ends).toEqual([1, 2, 2, 4, 6, 8]);
  });

  it("gives ranges that cover the text in order", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const { points, starts, ends } = foldText(text);
        for (let i = 0; i < points.length; i++) {
          expect(starts[i]).toBeLessThan(ends[i]!);
          expect(starts[i]).toBeGreaterThanOrEqual(i === 0 ? 0 : starts[i - 1]!);
          expect(ends[i]).toBeLessThanOrEqual(text.length);
        }
      }),
    );
  });
});
