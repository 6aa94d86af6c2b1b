// One entry as a line of JSON: what is accepted, and what is refused.
import { expect, test } from "vitest";
import { entryLine, readEntryLine } from "../../../src/cli/entries/entry-line.ts";
import { CommandError } from "../../../src/cli/exit-code.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const read = (text: string) => readEntryLine({ text, number: 7 }, "file.jsonl", NOW);

test.each([
  ["{", "not valid JSON"],
  ["[]", "not a JSON object"],
  ["null", "not a JSON object"],
  ['{"value":1}', "key must be"],
  ['{"key":"","value":1}', "key must be"],
  ['{"key":"a"}', "value is missing"],
  ['{"key":"a","value":1,"ttl_seconds":0}', "ttl_seconds must be"],
  ['{"key":"a","value":1,"ttl_seconds":"5"}', "ttl_seconds must be"],
  ['{"key":"a","value":1,"expires_at":"soon"}', "expires_at"],
  ['{"key":"a","value":1,"tags":"x"}', "tags must be"],
  ['{"key":"a","value":1,"tags":[""]}', "tags must be"],
  ['{"key":"a","value":{"$type":"function"}}', 'unknown $type "function"'],
  ['{"key":"a","value":{"$type":"map","value":5}}', "expected an array"],
])("%s is refused by its line and what is wrong", (text, wrong) => {
  expect(() => read(text)).toThrow(CommandError);
  expect(() => read(text)).toThrow(/^file\.jsonl:7: /);
  expect(() => read(text)).toThrow(wrong);
});

test("a line needs only a key and a value", () => {
  expect(read('{"key":"a","value":null,"more":1}')).toEqual({
    key: "a",
    value: null,
    ttl: undefined,
    tags: [],
  });
});

test("the expiry time takes precedence over the ttl", () => {
  const ttl = (fields: object) => read(JSON.stringify({ key: "a", value: 1, ...fields })).ttl;
  expect(ttl({ ttl_seconds: 600 })).toBe(600);
  expect(ttl({ ttl_seconds: 600, expires_at: "2026-01-01T00:00:05Z" })).toBe(5);
  expect(ttl({ expires_at: "2025-12-31T23:59:00Z" })).toBe(-60);
  expect(ttl({ ttl_seconds: null })).toBe(Number.POSITIVE_INFINITY);
  expect(ttl({ ttl_seconds: 5, expires_at: null })).toBe(Number.POSITIVE_INFINITY);
});

test("what is written is read back", () => {
  const entry = { key: "a\n", ttl: 1.5, tags: ["t"] };
  const line = entryLine(entry, { at: new Date(5) }, NOW);
  expect(line).not.toContain("\n");
  expect(read(line)).toEqual({ key: "a\n", value: { at: new Date(5) }, ttl: 1.5, tags: ["t"] });
  expect(read(entryLine({ ...entry, ttl: Number.POSITIVE_INFINITY }, 1, NOW)).ttl).toBe(
    Number.POSITIVE_INFINITY,
  );
});
