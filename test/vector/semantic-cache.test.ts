// The semantic cache on the memory store: which answers it gives, and how it handles failures.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";
import { CodecError, ConfigError, ConnectionError } from "../../src/core/errors.ts";
import { cacheWithClock, ManualClock } from "../../src/testing/index.ts";
import { type Embedder, EmbeddingError, SemanticCache } from "../../src/vector/index.ts";
import type { SemanticCacheOptions } from "../../src/vector/options.ts";
import type { XCache } from "../../src/xcache.ts";
import { type TopicEmbedder, topicEmbedder } from "../behaviour/vector/topics.ts";

const RESET = "How do I reset my password?";
const RECOVER = "I forgot my login, please";
const BILL = "Where is my invoice?";

let clock: ManualClock;
let cache: XCache;
let embed: TopicEmbedder;

beforeEach(() => {
  clock = new ManualClock();
  cache = cacheWithClock({ backend: new MemoryBackend() }, clock);
  embed = topicEmbedder();
});
afterEach(() => cache.disconnect());

function open(options: Partial<SemanticCacheOptions> = {}): SemanticCache {
  return new SemanticCache({ cache, embed, clock, namespace: "faq", threshold: 0.9, ...options });
}

const never = (): never => {
  throw new Error("a load that should not run");
};

describe("getOrSet", () => {
  test("answers the exact text without calling the embedder again", async () => {
    const answers = open();
    expect(await answers.getOrSet(RESET, () => "by link")).toBe("by link");
    expect(embed.asked).toEqual([RESET]);
    expect(await answers.getOrSet(RESET, never)).toBe("by link");
    expect(embed.asked).toEqual([RESET]);
  });

  test("answers a text whose score reaches the threshold, and loads for one that does not", async () => {
    const answers = open();
    const hits: string[] = [];
    answers.on("hit", ({ key }) => hits.push(key));
    await answers.getOrSet(RESET, () => "by link");
    expect(await answers.getOrSet(RECOVER, never)).toBe("by link");
    expect(await answers.getOrSet(BILL, () => "in your mail")).toBe("in your mail");
    expect(hits).toEqual([RESET]);
    expect(answers.getStats()).toEqual({ likeHits: 1, loads: 2, failures: 0, vectors: 2, usesGraph: false });
  });

  test("takes the nearest of several", async () => {
    const answers = open({ threshold: 0.5 });
    await answers.set("password", "far");
    await answers.set("reset password", "near");
    expect(await answers.getOrSet(RECOVER, never)).toBe("near");
  });

  test("does not store a similar answer under the text that was asked", async () => {
    const answers = open();
    await answers.getOrSet(RESET, () => "by link");
    await answers.getOrSet(RECOVER, never);
    expect(await cache.namespace("faq").exists(RECOVER)).toBe(false);
  });

  test("loads once for many callers with the same text", async () => {
    const answers = open();
    let loads = 0;
    const all = await Promise.all(
      Array.from({ length: 20 }, () => answers.getOrSet(RESET, async () => ({ load: ++loads }))),
    );
    expect(loads).toBe(1);
    expect(embed.asked).toHaveLength(1);
    expect(new Set(all).size).toBe(20);
    for (const answer of all) expect(answer).toEqual({ load: 1 });
  });

  test("keeps ttl and tags, including those that the load decides", async () => {
    const answers = open();
    await answers.getOrSet(
      RESET,
      (context) => {
        context.setTtl(60);
        context.setTags(["late"]);
        return "by link";
      },
      { ttl: 10, tags: ["early"] },
    );
    const faq = cache.namespace("faq");
    expect(await faq.ttl(RESET)).toBe(60);
    expect(await faq.tags(RESET)).toEqual(["early", "late"]);
    await clock.advance(60_000);
    expect(await answers.getOrSet(RECOVER, () => "anew")).toBe("anew");
  });

  test("passes the expired answer to the load", async () => {
    const answers = open();
    await answers.getOrSet(RESET, () => "old", { ttl: 10, staleIfError: 60 });
    await clock.advance(20_000);
    const seen: unknown[] = [];
    await answers.getOrSet(
      RESET,
      (context) => {
        seen.push(context.stale);
        return "new";
      },
      { ttl: 10, staleIfError: 60 },
    );
    expect(seen).toEqual(["old"]);
  });

  test("serves the expired answer when the load fails, if configured", async () => {
    const answers = open();
    await answers.getOrSet(RESET, () => "old", { ttl: 10, staleIfError: 60 });
    await clock.advance(20_000);
    const failing = (): never => {
      throw new Error("no");
    };
    expect(await answers.getOrSet(RESET, failing, { ttl: 10, staleIfError: 60 })).toBe("old");
    await expect(answers.getOrSet(RECOVER, failing, { staleIfError: 60 })).rejects.toThrow("no");
  });

  test("loads again with forceLoad, without a similarity search", async () => {
    const answers = open();
    await answers.getOrSet(RESET, () => "one");
    expect(await answers.getOrSet(RECOVER, () => "two", { forceLoad: true })).toBe("two");
    expect(await answers.getOrSet(RECOVER, never)).toBe("two");
  });

  test("returns a skipped or undefined result without storing it", async () => {
    const answers = open();
    const skipping = (context: { skip(): void }): string => {
      context.skip();
      return "once";
    };
    expect(await answers.getOrSet(RESET, skipping)).toBe("once");
    expect(await answers.getOrSet(RESET, () => undefined)).toBeUndefined();
    expect(await answers.getOrSet(RESET, () => null)).toBeNull();
    expect(await answers.getOrSet(RECOVER, never)).toBeNull();
  });

  test("rejects all waiting callers with the load's error, unwrapped", async () => {
    const answers = open();
    const error = new Error("the model is out");
    const failing = async (): Promise<never> => {
      throw error;
    };
    const outcomes = await Promise.allSettled([
      answers.getOrSet(RESET, failing),
      answers.getOrSet(RESET, failing),
    ]);
    expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason)).toEqual([
      error,
      error,
    ]);
  });

  test("reports the path within the caller's value for a part that cannot be stored", async () => {
    const answers = open();
    const error = await answers
      .getOrSet(RESET, () => ({ list: [() => 1] }))
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CodecError);
    expect((error as CodecError).path).toBe("$.list[0]");
    expect((error as CodecError).message).not.toContain("$.value");
  });

  test("refuses an unknown option", async () => {
    await expect(open().getOrSet(RESET, () => 1, { tll: 5 } as never)).rejects.toThrow("ttl");
  });

  test("stores a load that ends after its caller gave up, and finds it by similarity", async () => {
    const answers = open();
    let finish = (_answer: string): void => {};
    const slow = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const given = answers.getOrSet(RESET, () => slow, { hardTimeout: 1 });
    const refused = expect(given).rejects.toThrow("hardTimeout");
    await clock.advance(1_000);
    await refused;
    finish("late");
    await clock.advance(1);
    expect(await answers.getOrSet(RECOVER, never)).toBe("late");
  });

  test.each([
    5,
    { text: "a foreign entry" },
    { text: RESET, model: "topics", vector: [1, 2], value: "forged" },
    { text: RESET, mark: "guessed", value: "forged", readAt: -1 },
  ])("loads again if %o was stored under the text", async (foreign) => {
    await cache.namespace("faq").set(RESET, foreign);
    const answers = open();
    expect(await answers.getOrSet(RESET, () => "mine")).toBe("mine");
    expect(await answers.getOrSet(RECOVER, never)).toBe("mine");
  });

  test.each([
    { staleIfError: 60 },
    { staleIfError: 60, staleWhileRevalidate: 60 },
    { staleIfError: 60, softTimeout: 1 },
  ])("throws the error of the load if only an expired foreign value is available: %o", async (terms) => {
    await cache.namespace("faq").getOrSet(RESET, () => 5, { ttl: 10, staleIfError: 60 });
    await clock.advance(20_000);
    let loads = 0;
    const failing = async (): Promise<never> => {
      if (++loads > 10) return new Promise<never>(() => {});
      throw new Error("no");
    };
    await expect(open().getOrSet(RESET, failing, terms)).rejects.toThrow("no");
    expect(loads).toBeLessThanOrEqual(2);
  });

  test("waits for a slow load that replaces a foreign value instead of starting others", async () => {
    await cache.namespace("faq").set(RESET, 5);
    let loads = 0;
    let finish = (_answer: string): void => {};
    const slow = (): Promise<string> => {
      loads++;
      return new Promise((resolve) => {
        finish = resolve;
      });
    };
    const given = open().getOrSet(RESET, slow, { softTimeout: 1 });
    for (let second = 0; second < 5; second++) await clock.advance(1_000);
    expect(loads).toBe(1);
    finish("mine");
    expect(await given).toBe("mine");
  });

  test("refuses a load that asks for its own text, which would wait for itself", async () => {
    const answers = open();
    const asking = answers.getOrSet(RESET, (): Promise<unknown> => answers.getOrSet(RESET, () => 1));
    await expect(asking).rejects.toBeInstanceOf(ConfigError);
    const nested = answers.getOrSet(RESET, () => answers.getOrSet(BILL, () => "inner"));
    expect(await nested).toBe("inner");
  });

  test("shares a load between objects on the same namespace", async () => {
    const [one, two] = [open(), open()];
    for (let at = 0; at < 5; at++) await two.set(`weather ${at}`, at);
    const [first, second] = await Promise.all([
      one.getOrSet(RESET, async () => "by link"),
      two.getOrSet(RESET, never),
    ]);
    expect([first, second]).toEqual(["by link", "by link"]);
    const likes = await Promise.all([one, two].map((answers) => answers.getOrSet(RECOVER, never)));
    expect(likes).toEqual(["by link", "by link"]);
  });

  test("finds what another object has just stored, for all concurrent callers", async () => {
    const [one, two] = [open(), open()];
    await two.ready();
    await one.set(RESET, "by link");
    const given = await Promise.all(
      Array.from({ length: 10 }, (_, at) => two.getOrSet(`${RECOVER} ${at}`, never)),
    );
    expect(given).toEqual(Array.from({ length: 10 }, () => "by link"));
  });
});

describe("when the embedder fails, getOrSet", () => {
  const broken: readonly (readonly [string, Embedder])[] = [
    ["throws", () => Promise.reject(new Error("out of quota"))],
    ["returns another length", () => [1, 2]],
    ["returns NaN", () => [Number.NaN, 1, 1, 1, 1, 1, 1]],
    ["returns zeros", () => new Float32Array(7)],
  ];

  test.each(broken)("runs the load if it %s, and emits the failure", async (_how, failing) => {
    const answers = open({ embed: failing, dimensions: 7 });
    const errors: Error[] = [];
    answers.on("error", ({ error }) => errors.push(error));
    expect(await answers.getOrSet(RESET, () => "answer")).toBe("answer");
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(EmbeddingError);
    expect(answers.getStats().failures).toBe(1);
    // Exact texts need no vector.
    expect(await answers.getOrSet(RESET, never)).toBe("answer");
  });

  test("runs the load after the timeout, if it hangs", async () => {
    const answers = open({ embed: () => new Promise(() => {}), dimensions: 7, timeout: 2 });
    const given = answers.getOrSet(RESET, () => "answer");
    await clock.advance(2_000);
    expect(await given).toBe("answer");
  });

  test("differs from search, get and set, which throw the error", async () => {
    const answers = open({ embed: () => new Float32Array(7) });
    for (const work of [answers.search(RESET), answers.get(RESET), answers.set(RESET, 1)]) {
      await expect(work).rejects.toBeInstanceOf(EmbeddingError);
    }
  });
});

describe("when the store fails", () => {
  test("getOrSet runs the load, and search throws", async () => {
    const answers = open();
    await cache.disconnect();
    expect(await answers.getOrSet(RESET, () => "answer")).toBe("answer");
    await expect(answers.search(RESET)).rejects.toBeInstanceOf(ConnectionError);
    await cache.connect();
    await answers.set(RESET, "by link");
    expect(await answers.search(RECOVER)).toHaveLength(1);
  });
});

describe("search", () => {
  test("returns key, text, score and value, best first, down to the threshold", async () => {
    const answers = open();
    await answers.set(RESET, "by link");
    await answers.set("password", { steps: 2 });
    await answers.set(BILL, "in your mail");
    const found = await answers.search(RECOVER, { threshold: 0.5 });
    expect(found.map(({ key, text, value }) => [key, text, value])).toEqual([
      [RESET, RESET, "by link"],
      ["password", "password", { steps: 2 }],
    ]);
    expect(found[0]?.score).toBe(1);
    expect(found[1]?.score).toBeCloseTo(Math.SQRT1_2, 2);
    expect(await answers.search(RECOVER, { threshold: 0.5, limit: 1 })).toHaveLength(1);
    expect(await answers.search(RECOVER)).toHaveLength(1);
    expect(await answers.search("weather", { threshold: 0.5 })).toEqual([]);
  });

  test("orders equal scores by key", async () => {
    const answers = open();
    for (const text of ["c password", "a password", "b password"]) await answers.set(text, text);
    const found = await answers.search("login");
    expect(found.map(({ key }) => key)).toEqual(["a password", "b password", "c password"]);
  });

  test("refuses an invalid text, limit or threshold", async () => {
    const answers = open();
    for (const [text, options] of [
      ["", {}],
      [5, {}],
      [RESET, { limit: 0 }],
      [RESET, { limit: 1.5 }],
      [RESET, { limit: 1_001 }],
      [RESET, { threshold: 1.1 }],
      [RESET, { threshold: Number.NaN }],
      [RESET, { treshold: 0.5 }],
    ] as const) {
      await expect(answers.search(text as string, options as object)).rejects.toBeInstanceOf(ConfigError);
    }
  });

  test.each([
    ["euclidean", 0.4],
    ["manhattan", 0.3],
    ["dot", 1],
  ] as const)("works by %s", async (metric, threshold) => {
    const answers = open({ metric, threshold });
    await answers.set(RESET, "by link");
    await answers.set(BILL, "in your mail");
    const [first, ...others] = await answers.search(RECOVER);
    expect(first?.value).toBe("by link");
    expect(others.every(({ score }) => score < first!.score)).toBe(true);
  });
});

describe("an answer", () => {
  test("of another text is never given after its entry was deleted, replaced or cleared", async () => {
    const answers = open();
    await answers.set(RESET, "one");
    await cache.namespace("faq").set(RESET, "not an answer at all");
    expect(await answers.get(RECOVER)).toBeUndefined();
    await answers.set(RESET, "two");
    expect(await answers.get(RECOVER)).toBe("two");
    expect(await answers.delete(RESET)).toBe(true);
    expect(await answers.delete(RESET)).toBe(false);
    expect(await answers.get(RECOVER)).toBeUndefined();
    await answers.set(RESET, "three");
    await cache.clear();
    expect(await answers.search(RECOVER)).toEqual([]);
  });

  test("is not given to a caller who came after its invalidation and joined an older search", async () => {
    const answers = open();
    await answers.set(RESET, "old", { tags: ["help"] });
    const faq = cache.namespace("faq");
    // Two callers and an invalidation within one turn of the event loop.
    for (let depth = 0; depth < 40; depth++) {
      await answers.set(RESET, "old", { tags: ["help"] });
      const first = answers.getOrSet(RECOVER, () => "new", { ttl: 1 });
      for (let step = 0; step < depth; step++) await Promise.resolve();
      await faq.invalidateTags("help");
      expect(await answers.getOrSet(RECOVER, () => "new", { ttl: 1 })).toBe("new");
      await first;
      await answers.clear();
    }
  });

  test("is not given after its invalidation by a cache that shares its loads with another one", async () => {
    const shared = new MemoryBackend();
    const [busy, quiet] = [
      cacheWithClock({ backend: shared }, clock),
      cacheWithClock({ backend: shared }, clock),
    ];
    const [one, two] = [open({ cache: busy }), open({ cache: quiet })];
    // So that the first has counted more changes than the second.
    for (let at = 0; at < 100; at++) await busy.namespace("faq").set(`weather ${at}`, at);
    for (let depth = 0; depth < 60; depth++) {
      await one.set(RESET, "old", { tags: ["help"] });
      await two.get(RECOVER);
      const first = one.getOrSet(RECOVER, () => "new", { ttl: 1 });
      for (let step = 0; step < depth; step++) await Promise.resolve();
      await two.invalidateTags("help");
      expect(await two.getOrSet(RECOVER, () => "new", { ttl: 1 })).toBe("new");
      await first;
      await two.clear();
    }
    await Promise.all([busy.disconnect(), quiet.disconnect()]);
  });

  test("belongs to the caller: changing it changes nothing else", async () => {
    const answers = open();
    const given = await answers.getOrSet(RESET, () => ({ list: [1] }));
    given.list.push(2);
    expect(await answers.getOrSet(RESET, never)).toEqual({ list: [1] });
    const like = (await answers.getOrSet(RECOVER, never)) as { list: number[] };
    like.list.push(3);
    expect(await answers.get(RECOVER)).toEqual({ list: [1] });
  });

  test("to a long, torn or odd text is found by exactly that text", async () => {
    const answers = open({ embed: () => Promise.reject(new Error("no")) });
    const long = "x".repeat(300);
    const digest = "sha256:5ea71dc6d0b4f57bf39aadd07c208c35f06cd2bac5fde210397f70de11d439c6";
    const texts = [long, `${long}y`, "\ud800", "\ud801", digest, "é".repeat(150), " ", "a\0b", "*"];
    for (const [at, text] of texts.entries()) expect(await answers.getOrSet(text, () => at)).toBe(at);
    for (const [at, text] of texts.entries()) expect(await answers.getOrSet(text, never)).toBe(at);
  });

  test("of another model is found by its exact text only", async () => {
    await open({ model: "old" }).set(RESET, "by link");
    const answers = open({ model: "new" });
    expect(await answers.search(RECOVER)).toEqual([]);
    expect(await answers.get(RESET)).toBe("by link");
  });
});

describe("the index", () => {
  test("does not grow with entries that have expired: the store is listed when it has doubled", async () => {
    const answers = open({ embed: topicEmbedder() });
    await answers.ready();
    for (let at = 0; at < 1_500; at++) {
      await answers.set(`password ${at}`, at, { ttl: 1 });
      if (at % 100 === 0) await clock.advance(2_000);
    }
    expect(answers.getStats().vectors).toBeLessThan(1_300);
  });

  test("does not grow with expired entries of others, nor with its own if there are no queries", async () => {
    const other = new SemanticCache({
      cache,
      embed: topicEmbedder(),
      clock,
      namespace: "faq",
      threshold: 0.9,
    });
    const reader = open();
    await reader.ready();
    for (let at = 0; at < 1_500; at++) {
      await other.set(`password ${at}`, at, { ttl: 1 });
      if (at % 100 !== 99) continue;
      await reader.get("weather");
      await clock.advance(2_000);
    }
    expect(reader.getStats().vectors).toBeLessThan(1_300);
    expect(other.getStats().vectors).toBeLessThan(1_300);
  });

  test("is freed when the cache is closed, even during a call", async () => {
    let embedded = (): void => {};
    const slow: Embedder = (text, context) =>
      text !== BILL
        ? embed(text, context)
        : new Promise((resolve) => {
            embedded = () => resolve(embed(BILL, context));
          });
    const answers = open({ embed: slow });
    await answers.set(RESET, "by link");
    const given = answers.getOrSet(BILL, () => "in your mail");
    await clock.advance(1);
    answers.close();
    embedded();
    expect(await given).toBe("in your mail");
    expect(answers.getStats().vectors).toBe(0);
  });

  test("drops entries that the store has evicted when a search finds them", async () => {
    const small = cacheWithClock({ backend: new MemoryBackend({ maxEntries: 20 }) }, clock);
    const answers = new SemanticCache({ cache: small, embed, clock, namespace: "faq", threshold: 0.9 });
    for (let at = 0; at < 100; at++) await answers.set(`password ${at}`, at);
    const found = await answers.search("login", { limit: 100 });
    expect(found.length).toBeGreaterThan(5);
    expect(found.length).toBeLessThanOrEqual(20);
    expect(answers.getStats().vectors).toBe(found.length);
    await small.disconnect();
  });

  test("is built from the stored entries, skipping those that are not answers", async () => {
    const first = open();
    for (let at = 0; at < 200; at++) await first.set(`password ${at}`, at);
    const faq = cache.namespace("faq");
    await faq.set("other", 5);
    await faq.set("odd", {
      text: "odd",
      model: "topics",
      vector: new Float32Array(7).fill(Number.NaN),
      value: 1,
    });
    const second = open();
    await second.ready();
    expect(second.getStats().vectors).toBe(200);
    expect(await second.search("login", { limit: 1_000 })).toHaveLength(200);
  });

  test("does not delay getOrSet beyond the timeout while the store is listed", async () => {
    const endless = open({ timeout: 3 });
    await open().set(RESET, "by link");
    const faq = cache.namespace("faq");
    const keys = faq.keys.bind(faq);
    let isStuck = true;
    faq.keys = () => ({
      async *[Symbol.asyncIterator]() {
        while (isStuck) await new Promise((resolve) => setImmediate(resolve));
        yield* keys();
      },
    });
    const given = endless.getOrSet(BILL, () => "loaded");
    await clock.advance(3_000);
    expect(await given).toBe("loaded");
    isStuck = false;
    await endless.ready();
    expect(await endless.getOrSet(RECOVER, never)).toBe("by link");
  });
});

describe("a semantic cache", () => {
  test("uses the lexical embedder unless given another", async () => {
    const answers = new SemanticCache({ cache, namespace: "plain", threshold: 0.6 });
    await answers.getOrSet("How do I reset my password?", () => "by link");
    expect(await answers.getOrSet("how can i reset my password", never)).toBe("by link");
    expect(await answers.getOrSet("weather in Lisbon", () => "sunny")).toBe("sunny");
    await expect(answers.search("   ")).rejects.toMatchObject({ problem: "zero" });
  });

  test.each([
    [{ threshold: undefined }, "threshold must be a number from 0 to 1"],
    [{ threshold: 1.5 }, "threshold must be a number from 0 to 1"],
    [{ threshold: Number.NaN, metric: "dot" }, "threshold must be a finite number"],
    [{ cache: undefined }, "cache must be an XCache"],
    [{ cache: { namespace: () => undefined } as unknown as XCache }, "cache must be an XCache"],
    [{ namespace: "" }, "namespace must be a non-empty string"],
    [{ embed: "model" }, "embed must be a function"],
    [{ metric: "cosin" }, "metric must be one of"],
    [{ dimensions: 0 }, "dimensions must be a whole number"],
    [{ timeout: 0 }, "timeout must be a number of seconds"],
    [{ exactUpTo: -1 }, "exactUpTo must be a whole number"],
    [{ maxVectors: 0 }, "maxVectors must be a whole number above 0"],
    [{ clock: {} }, "clock must be a Clock"],
    [{ tresholds: 1 }, "threshold"],
  ])("refuses %o", (options, message) => {
    expect(() => open(options as never)).toThrow(message);
  });

  test("refuses an invalid event or listener", () => {
    const answers = open();
    expect(() => answers.on("set" as never, () => {})).toThrow("event must be one of hit, miss, error");
    expect(() => answers.off("hit", 5 as never)).toThrow("listener must be a function");
  });

  test("refuses calls after it was closed, and no longer listens", async () => {
    const answers = open();
    await answers.set(RESET, 1);
    answers.close();
    await expect(answers.getOrSet(RESET, never)).rejects.toThrow("closed");
    await expect(answers.clear()).rejects.toThrow("closed");
    expect(await cache.namespace("faq").exists(RESET)).toBe(true);
  });
});
