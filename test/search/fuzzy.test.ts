import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";
import { type FuzzyOptions, fuzzySearch } from "../../src/search/fuzzy.ts";
import { infixDistance } from "./naive-distance.ts";

const all: FuzzyOptions = { threshold: 0, limit: 1000 };
const pointsOf = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0)!);
async function keysFor(keys: string[], text: string, options?: FuzzyOptions): Promise<string[]> {
  return (await fuzzySearch(keys, text, options)).map((match) => match.key);
}
/** The part of the key that matched best, with its score. */
async function matched(key: string, text: string): Promise<[string, number]> {
  const [match] = await fuzzySearch([key], text, all);
  return [key.slice(...match!.range), match!.score];
}

describe("the score", () => {
  it.each<[string, string, string, number]>([
    ["user:johnson:profile", "johnson", "johnson", 100],
    ["user:johnson:profile", "JOHNSON", "johnson", 100],
    ["user:johnson:profile", "jonhson", "johnson", 85],
    ["user:johnson:profile", "johnsonn", "johnson", 87],
    ["user:johnson:profile", "johson", "johnson", 83],
    ["user:johnson:profile", "johnsxn", "johnson", 85],
    ["user:johnson:profile", "zzzzz", "", 0],
    ["abc", "abcdefghij", "abc", 30],
    ["a", "a", "a", 100],
  ])("of %j for %j is that of %j: %d", async (key, text, part, score) => {
    expect(await matched(key, text)).toEqual([part, score]);
  });

  it("reaches 100 only for an exact occurrence, however long the text", async () => {
    const text = "abcdefghij".repeat(20);
    expect(await matched(`<${text}>`, text)).toEqual([text, 100]);
    const typo = `${text.slice(0, 99)}_${text.slice(100)}`;
    expect(await matched(`<${typo}>`, text)).toEqual([typo, 99]);
    expect(await matched(`<${typo}é>`, text)).toEqual([typo, 99]);
  });

  it("matches the edit table, best first, equal scores by key, up to the limit", async () => {
    const unit = fc.constantFrom(..."aabB-é");
    const key = fc.string({ unit, minLength: 1, maxLength: 12 });
    const word = fc.string({ unit, minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(key, { maxLength: 30 }),
        fc.array(word, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 0, max: 100 }),
        fc.integer({ min: 1, max: 12 }),
        async (keys, words, threshold, limit) => {
          const total = words.join("").length;
          const fold = (text: string): number[] => pointsOf(text.toLowerCase());
          const expected = [...new Set(keys)]
            .map((each) => {
              const edits = words.reduce((sum, one) => sum + infixDistance(fold(one), fold(each)), 0);
              return { key: each, score: Math.floor((100 * (total - edits)) / total) };
            })
            .filter(({ score }) => score >= threshold)
            .sort((a, b) => b.score - a.score || (a.key < b.key ? -1 : 1))
            .slice(0, limit);
          const found = await fuzzySearch(keys, words.join(" "), { threshold, limit });
          expect(found.map(({ key: each, score }) => ({ key: each, score }))).toEqual(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("compares characters, not the bytes or units they are written in", async () => {
    expect(await matched("straße:1", "STRASSE")).toEqual(["straße", 100]);
    expect(await matched("STRASSE:1", "straße")).toEqual(["STRASSE", 100]);
    expect(await matched("café:1", "cafe\u0301")).toEqual(["café", 100]);
    expect(await matched("cafe\u0301:1", "café")).toEqual(["cafe\u0301", 100]);
    expect(await matched("İstanbul", "i\u0307stanbul")).toEqual(["İstanbul", 100]);
    expect(await matched("İstanbul", "istanbul")).toEqual(["İstanbul", 87]);
    expect(await matched("to 👩\u200d🚀 and 👨‍👩‍👧", "👩🚀")).toEqual(["👩\u200d🚀", 100]);
    expect(await matched("say 🚀🛰 now", "🚀x")).toEqual(["🚀", 50]);
    expect(await matched("ＵＳＥＲ：１", "user:1")).toEqual(["ＵＳＥＲ：１", 100]);
  });
});

describe("a text of several words", () => {
  it("matches them in any order and ranges from the first to the last", async () => {
    const key = "order:mountain-bike:helmet";
    expect(await matched(key, "bike mountain")).toEqual(["mountain-bike", 100]);
    expect(await matched(key, "  helmet\tmountain ")).toEqual(["mountain-bike:helmet", 100]);
    expect(await matched(key, "helmt order")).toEqual(["order:mountain-bike:helmet", 90]);
    expect(await matched(key, "helmet zzz")).toEqual(["helmet", 66]);
  });

  it("weighs them by length", async () => {
    const found = await fuzzySearch(["mountain:b", "bike:m"], "mountain bike", { threshold: 0 });
    expect(found.map(({ key, score }) => [key, score])).toEqual([
      ["mountain:b", 75],
      ["bike:m", 41],
    ]);
  });
});

describe("the options", () => {
  const keys = ["apple:1", "appel:2", "aple:3", "apxle:4", "axxle:5", "pear:6"];

  it("default to a threshold of 80 and ten matches", async () => {
    expect(await keysFor(keys, "apple")).toEqual(["apple:1", "aple:3", "appel:2", "apxle:4"]);
    expect(
      await keysFor(
        Array.from({ length: 30 }, (_, i) => `apple:${i}`),
        "apple",
      ),
    ).toHaveLength(10);
  });

  it("keep a match that reaches the threshold exactly", async () => {
    expect(await keysFor(keys, "apple", { threshold: 60 })).toContain("axxle:5");
    expect(await keysFor(keys, "apple", { threshold: 61 })).not.toContain("axxle:5");
    expect(await keysFor(keys, "apple", { threshold: 100 })).toEqual(["apple:1"]);
    expect(await keysFor(keys, "apple", all)).toHaveLength(6);
  });

  it("keep the best when there are more than the limit, wherever they appear", async () => {
    for (const order of [keys, keys.toReversed()]) {
      expect(await keysFor(order, "apple", { threshold: 0, limit: 2 })).toEqual(["apple:1", "aple:3"]);
    }
  });

  it.each<[string, string, object]>([
    ["text must contain a visible character", "", {}],
    ["text must contain a visible character", " \t\u00a0\u200d", {}],
    ["text must be a string; got 5", 5 as never, {}],
    ["text must be at most 256 characters; got a string of 257 characters", "a".repeat(257), {}],
    ["text must be at most 256 characters; got a string of 10000000 characters", "a".repeat(1e7), {}],
    ["text must be at most 256 characters after normalising; got", "\ufdfa".repeat(40), {}],
    ["text must have at most 16 words; got", "a ".repeat(17), {}],
    ["threshold must be an integer from 0 to 100; got 101", "a", { threshold: 101 }],
    ["threshold must be an integer from 0 to 100; got -1", "a", { threshold: -1 }],
    ["threshold must be an integer from 0 to 100; got 0.8", "a", { threshold: 0.8 }],
    ["threshold must be an integer from 0 to 100; got NaN", "a", { threshold: Number.NaN }],
    ["limit must be a positive integer; got 0", "a", { limit: 0 }],
    ["limit must be a positive integer; got 1.5", "a", { limit: 1.5 }],
    ["limit must be a positive integer; got Infinity", "a", { limit: Number.POSITIVE_INFINITY }],
  ])("are refused: %s", async (message, text, options) => {
    const refused = fuzzySearch([], text, options);
    await expect(refused).rejects.toThrow(`fuzzySearch(): ${message}`);
    await expect(refused).rejects.toThrow(
      expect.objectContaining({ constructor: ConfigError, code: "ARGUMENT_INVALID" }),
    );
  });
});

describe("the longest text", () => {
  it("is searched for: 256 characters in 16 words", async () => {
    const words = Array.from({ length: 16 }, (_, at) => String.fromCharCode(97 + at).repeat(15)).join(" ");
    expect(await keysFor([words, "other"], `${words} `)).toEqual([words]);
    expect(await keysFor(["a".repeat(300), "b"], "a".repeat(256))).toEqual(["a".repeat(300)]);
  });
});

describe("a very large limit", () => {
  it("does not cost more per match", async () => {
    const keys = Array.from({ length: 3_000 }, (_, at) => `apple:${at}`);
    const comparisons = vi.spyOn(Array.prototype, "some");
    const found = await keysFor([...keys, ...keys], "apple", { limit: 5_000 });
    const count = comparisons.mock.calls.length;
    comparisons.mockRestore();
    expect(found).toHaveLength(3_000);
    expect(count).toBeLessThan(10);
  });

  it("accepts a key again that a better one had displaced", async () => {
    const order = ["aple", "appla", "apple", "appla", "apple:1", "aple"];
    expect(await keysFor(order, "apple", { threshold: 0, limit: 3 })).toEqual(["apple", "apple:1", "aple"]);
  });
});

describe("the source of keys", () => {
  async function* streamed<T>(items: T[]): AsyncGenerator<T> {
    yield* items;
  }

  it("may be a list, a stream of keys or a stream of batches, with repeats", async () => {
    const expected = ["apple:1", "aple:2"];
    expect(await keysFor(["apple:1", "aple:2", "apple:1"], "apple")).toEqual(expected);
    expect(await keysFor(new Set(expected) as never, "apple")).toEqual(expected);
    expect(await keysFor(streamed(["aple:2", "apple:1", "apple:1"]) as never, "apple")).toEqual(expected);
    expect(await keysFor(streamed([["aple:2", "apple:1"], [], ["aple:2"]]) as never, "apple")).toEqual(
      expected,
    );
  });

  it("passes its error on", async () => {
    async function* broken(): AsyncGenerator<string> {
      yield "apple";
      throw new RangeError("no more");
    }
    await expect(fuzzySearch(broken(), "apple")).rejects.toThrow(new RangeError("no more"));
  });

  it("does not block the event loop, one by one, in batches or as a list", async () => {
    const keys = Array.from({ length: 40_000 }, (_, i) => `user:${i}:a rather long key to look through`);
    for (const source of [keys, streamed(keys), streamed([keys])]) {
      let turns = 0;
      let running = true;
      const count = (): void => {
        turns++;
        if (running) setImmediate(count);
      };
      setImmediate(count);
      await fuzzySearch(source, "user 123");
      running = false;
      expect(turns).toBeGreaterThan(3);
    }
  });

  it("does not block the event loop with long keys either", async () => {
    const keys = Array.from({ length: 40 }, (_, i) => `${i}${"é".repeat(5000)}`);
    const immediate = vi.spyOn(globalThis, "setImmediate");
    try {
      await fuzzySearch(keys, "é".repeat(40), { limit: 40 });
      expect(immediate.mock.calls.length).toBeGreaterThan(15);
    } finally {
      immediate.mockRestore();
    }
  });
});

describe("the signal", () => {
  it("rejects at once if already aborted", async () => {
    const reason = new Error("mine");
    await expect(fuzzySearch(["a"], "a", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it("ends a running search, requests no more keys and closes its source", async () => {
    const controller = new AbortController();
    let asked = 0;
    const closed = vi.fn();
    async function* endless(): AsyncGenerator<string> {
      try {
        for (; ; asked++) {
          if (asked === 100) controller.abort();
          yield `key:${asked}`;
        }
      } finally {
        closed();
      }
    }
    const search = fuzzySearch(endless(), "key", { signal: controller.signal });
    await expect(search).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
    await vi.waitFor(() => expect(closed).toHaveBeenCalledTimes(1));
    expect(asked).toBe(100);
  });

  it("ends a search through a list between two turns", async () => {
    const controller = new AbortController();
    let looked = 0;
    function* endless(): Generator<string> {
      for (;;) yield `key:${looked++}:and so on and so on`;
    }
    setImmediate(() => controller.abort());
    const search = fuzzySearch(endless(), "key", { signal: controller.signal });
    await expect(search).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
    const lookedThen = looked;
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(looked).toBe(lookedThen);
  });

  it("does not wait for a source that never answers", async () => {
    const controller = new AbortController();
    const silent: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    };
    const search = fuzzySearch(silent, "key", { signal: controller.signal });
    controller.abort();
    await expect(search).rejects.toBe(controller.signal.reason);
  });
});

describe("a very long key", () => {
  const filling = ["x".repeat(60_000), "é".repeat(30_000), "漢字".repeat(10_000), "😀".repeat(15_000)];

  it.each(filling)("is searched to its end and scored like a short one", async (filler) => {
    const key = `${filler}:jonhson`;
    expect(await fuzzySearch(["johnson", key], "johnson")).toEqual([
      { key: "johnson", score: 100, range: [0, 7] },
      { key, score: 85, range: [key.length - 7, key.length] },
    ]);
  });

  it("does not block the event loop while it is searched", async () => {
    const words = Array.from({ length: 16 }, (_, at) => `word${at}`).join(" ");
    let turns = 0;
    let isRunning = true;
    const look = (): void => {
      turns++;
      if (isRunning) setImmediate(look);
    };
    setImmediate(look);
    await fuzzySearch(["é".repeat(30_000)], words, all);
    isRunning = false;
    expect(turns).toBeGreaterThan(20);
  });

  it("of one letter under thousands of marks does not take quadratic time", async () => {
    const key = `a${"\u0316\u0300".repeat(16_000)}b`;
    const before = process.cpuUsage();
    expect((await fuzzySearch([key], "b"))[0]).toEqual({ key, score: 100, range: [32_001, 32_002] });
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(400);
  });
});

it("orders equal scores by key, even if several distances give the same score", async () => {
  const text = Array.from({ length: 200 }, (_, at) => "abcdefghij"[(at * 7 + (at >> 3)) % 10]).join("");
  const without = (count: number, first: string): string =>
    `${first}:${text.slice(0, 100)}${text.slice(100 + count)}`;
  const keys = [without(2, "z"), without(1, "y"), without(2, "x"), without(3, "a"), without(1, "w")];
  const found = await fuzzySearch(keys, text);
  expect(found.map(({ key, score }) => [key[0], score])).toEqual([
    ["w", 99],
    ["x", 99],
    ["y", 99],
    ["z", 99],
    ["a", 98],
  ]);
  expect((await fuzzySearch(keys, text, { limit: 2 })).map(({ key }) => key[0])).toEqual(["w", "x"]);
});
