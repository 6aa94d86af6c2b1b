// Text formatting: escaping, widths, tables, sparklines, durations, amounts.
import { describe, expect, test } from "vitest";
import { displayWidth, tableLines, truncate } from "../../../src/cli/terminal/display-width.ts";
import { escapeControls, isUnsafe, jsonText, visibleLines } from "../../../src/cli/terminal/escape.ts";
import { durationText, latencyText, parseDuration } from "../../../src/cli/terminal/format-duration.ts";
import {
  bytesText,
  counted,
  countText,
  percentText,
  rateText,
  sparkline,
} from "../../../src/cli/terminal/format-number.ts";
import { progressLine } from "../../../src/cli/terminal/progress.ts";
import { hasColour, isAnimated } from "../../../src/cli/terminal/terminal.ts";

describe("displayed text", () => {
  test("contains no terminal control characters", () => {
    for (let code = 0; code < 0x11_0000; code++) {
      const character = String.fromCodePoint(code);
      if (!/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}]/u.test(character)) continue;
      expect(escapeControls(character), code.toString(16)).toMatch(/^\\[nrtxu][0-9a-f]*$/);
      expect(JSON.parse(jsonText(character))).toBe(character);
      expect(jsonText(character)).toMatch(/^"\\[a-z][0-9a-f]*"$/);
    }
  });

  test("is otherwise unchanged", () => {
    for (const text of ["user:1", "größe 日本 👍🏽", "a\\b"]) {
      expect([escapeControls(text), isUnsafe(text)]).toEqual([text, false]);
    }
  });

  test("keeps its line breaks where these are allowed", () => {
    expect(visibleLines("a\n\tb\r")).toBe("a\n\tb\\r");
    expect(escapeControls("a\nb")).toBe("a\\nb");
  });
});

describe("the width of text", () => {
  test.each([
    ["abc", 3],
    ["größe", 5],
    ["e\u0301", 1],
    ["日本", 4],
    ["👍", 2],
    ["\u001b[31mred\u001b[39m", 3],
  ])("%j is that many columns", (text, width) => expect(displayWidth(text)).toBe(width));

  test("is respected when text is cut, and colours are reset", () => {
    expect(truncate("abcdef", 4)).toBe("abc…");
    expect(truncate("abcd", 4)).toBe("abcd");
    expect(truncate("日本語", 4)).toBe("日…");
    expect(truncate("\u001b[31mabcdef", 4)).toBe("\u001b[31mabc…\u001b[0m");
  });

  test("aligns a table", () => {
    expect(
      tableLines(
        [
          ["日本", "1", "x"],
          ["a", "22"],
        ],
        [1],
      ),
    ).toEqual(["日本   1  x", "a     22"]);
  });
});

describe("a curve", () => {
  test("goes from zero to the largest figure, or to a given maximum", () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8)).toBe("▁▂▃▄▅▆▇█");
    expect(sparkline([0.5, 1], 8, { most: 1 })).toBe("▅█");
    expect(sparkline([0, 0], 8)).toBe("▁▁");
    expect(sparkline([1, undefined, 1], 8)).toBe("█ █");
  });

  test("shows the last figures when there is no room for all", () => {
    expect(sparkline([7, 0, 7], 2)).toBe("▁█");
  });
});

test.each([
  ["90", 90],
  ["1.5s", 1.5],
  ["500ms", 0.5],
  ["5m", 300],
  ["1h", 3_600],
  ["7d", 604_800],
  ["never", Number.POSITIVE_INFINITY],
  ["0", undefined],
  ["-5", undefined],
  ["5 weeks", undefined],
  ["", undefined],
  ["1e3", undefined],
])("the duration %j is %j seconds", (text, seconds) => expect(parseDuration(text)).toBe(seconds));

test.each([
  [0.25, "250ms"],
  [59, "59s"],
  [60, "1m"],
  [3_725, "1h 2m"],
  [3_605, "1h"],
  [90_000, "1d 1h"],
  [Number.POSITIVE_INFINITY, "never"],
  [undefined, "-"],
])("%j seconds are shown as %j", (seconds, text) => expect(durationText(seconds)).toBe(text));

test("amounts are rounded to a readable precision", () => {
  expect([latencyText(0), latencyText(0.000_214), latencyText(0.0123), latencyText(1.5)]).toEqual([
    "0 ms",
    "0.21 ms",
    "12.3 ms",
    "1500 ms",
  ]);
  expect([bytesText(0), bytesText(1_023), bytesText(1_536), bytesText(200 * 2 ** 20)]).toEqual([
    "0 B",
    "1023 B",
    "1.5 KiB",
    "200 MiB",
  ]);
  expect([countText(1_234_567), counted(1, "key"), counted(2, "entry", "entries")]).toEqual([
    "1,234,567",
    "1 key",
    "2 entries",
  ]);
  expect([percentText(0.942), rateText(0), rateText(3.456), rateText(1_234.5)]).toEqual([
    "94.2 %",
    "0",
    "3.46",
    "1,235",
  ]);
});

test("progress has a bar, a rate and the remaining time", () => {
  expect(progressLine(500, 0.25, 10)).toBe(`${"█".repeat(6)}${"░".repeat(18)}  25 %  500  50/s  30s left`);
  expect(progressLine(500, undefined, 10)).toBe("500  50/s");
  expect(progressLine(0, 0, 0)).toContain("- left");
});

describe("colours", () => {
  const [terminal, pipe] = [{ isTTY: true }, { isTTY: false }];
  test("are used on terminals, unless configured otherwise", () => {
    expect(hasColour(terminal, {}, true)).toBe(true);
    expect(hasColour(pipe, {}, true)).toBe(false);
    expect(hasColour(terminal, { TERM: "dumb" }, true)).toBe(false);
    expect(hasColour(terminal, {}, false)).toBe(false);
    expect(hasColour(terminal, { NO_COLOR: "1" }, true)).toBe(false);
    expect(hasColour(terminal, { NO_COLOR: "" }, true)).toBe(true);
    expect(hasColour(pipe, { FORCE_COLOR: "1" }, true)).toBe(true);
    expect(hasColour(terminal, { FORCE_COLOR: "0" }, true)).toBe(false);
    expect(hasColour(pipe, { FORCE_COLOR: "1", NO_COLOR: "1" }, true)).toBe(false);
    expect(hasColour(pipe, { FORCE_COLOR: "1" }, false)).toBe(false);
  });

  test("do not turn on animations in a pipe, on a dumb terminal or in CI", () => {
    expect(isAnimated(terminal, {})).toBe(true);
    expect(isAnimated(pipe, { FORCE_COLOR: "1" })).toBe(false);
    expect(isAnimated(terminal, { CI: "true" })).toBe(false);
    expect(isAnimated(terminal, { CI: "false" })).toBe(true);
    expect(isAnimated(terminal, { TERM: "dumb" })).toBe(false);
  });
});
