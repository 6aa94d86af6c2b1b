import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { closestName, editDistance, suggestName } from "../../src/core/suggest-name.ts";

const FIELDS = [
  "kvUrl",
  "defaultTtl",
  "keyPrefix",
  "enableFuzzy",
  "operationTimeout",
  "connectTimeout",
  "poolSize",
];

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["ping", "ping", 0],
    ["ping", "pnig", 1],
    ["ping", "pin", 1],
    ["ping", "pings", 1],
    ["ping", "pong", 1],
    ["abc", "", 3],
    ["ca", "abc", 3],
    ["kitten", "sitting", 3],
  ])("%j to %j takes %i", (from, to, edits) => {
    expect(editDistance(from, to)).toBe(edits);
  });

  it("is symmetric, zero only for equal names and at most the longer length", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(editDistance(b, a)).toBe(distance);
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});

describe("nearestName", () => {
  it.each([
    ["default_ttl", "defaultTtl"],
    ["DEFAULT-TTL", "defaultTtl"],
    ["defualtTtl", "defaultTtl"],
    ["poolsize", "poolSize"],
    ["enableFuzy", "enableFuzzy"],
    ["ttl", "defaultTtl"],
    ["redisUrl", "kvUrl"],
    ["prefix", "keyPrefix"],
    ["timeout", "operationTimeout"],
    ["connectionTimeout", "connectTimeout"],
  ])("%s leads to %s", (given, name) => {
    expect(closestName(given, FIELDS)).toBe(name);
  });

  it("a spelling that differs only by convention beats every other name", () => {
    fc.assert(
      fc.property(fc.constantFrom(...FIELDS), (name) => {
        const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
        return closestName(snake, FIELDS) === name;
      }),
    );
  });

  it.each(["wibble", "", "x", "_", "constructor"])("nothing is suggested for %j", (given) => {
    expect(closestName(given, FIELDS)).toBeUndefined();
  });

  it("an endless name is not compared at all", () => {
    expect(closestName(`defaultTtl${"x".repeat(1_000_000)}`, FIELDS)).toBeUndefined();
  });

  it("the advice names the nearest one, or all of them when none is close", () => {
    expect(suggestName("pool_size", FIELDS)).toBe('did you mean "poolSize"?');
    expect(suggestName("wibble", ["copy", "shared"])).toBe("use one of copy, shared");
  });
});
