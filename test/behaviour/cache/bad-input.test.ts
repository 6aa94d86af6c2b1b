// Every operation with every wrong argument: a typed error that states what was expected and what arrived, and an
// unchanged cache.
import { describe, expect, it } from "vitest";
import { ConfigError, InvalidKeyError, XCacheError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { listed, memoryCache } from "./memory-cache.ts";

type Call = (cache: XCache, arrived: never) => unknown;
type Wrong = readonly [what: string, arrived: unknown, words: RegExp];

const TOO_LONG = "k".repeat(64 * 1024 + 1);

const names = (what: string): readonly Wrong[] => [
  ["undefined", undefined, new RegExp(`^${what} must be a non-empty string, got undefined$`)],
  ["null", null, new RegExp(`^${what} must be a non-empty string, got null$`)],
  ["a number", 5, new RegExp(`^${what} must be a non-empty string, got 5$`)],
  ["an object", { a: 1 }, new RegExp(`^${what} must be a non-empty string, got an object \\(Object\\)$`)],
  ["a symbol", Symbol("s"), new RegExp(`^${what} must be a non-empty string, got a symbol$`)],
  [
    "a boxed string",
    Object("k"),
    new RegExp(`^${what} must be a non-empty string, got an object \\(String\\)$`),
  ],
  ["an empty string", "", new RegExp(`^${what} must be a non-empty string, got ""$`)],
  [
    "a string too long",
    TOO_LONG,
    new RegExp(`^${what} must be at most 65536 bytes of UTF-8, got 65537 bytes$`),
  ],
];

const notLists = (expected: string): readonly Wrong[] => [
  ["null", null, new RegExp(`^${expected}, got null$`)],
  ["a number", 5, new RegExp(`^${expected}, got 5$`)],
  ["an object", {}, new RegExp(`^${expected}, got an object \\(Object\\)$`)],
  ["a Set", new Set(["a"]), new RegExp(`^${expected}, got an object \\(Set\\)$`)],
];

const notOptions: readonly Wrong[] = [
  ["null", null, /^options must be an object, got null$/],
  ["a number", 60, /^options must be an object, got 60$/],
  ["a string", "60", /^options must be an object, got "60"$/],
  ["a list", ["t"], /^options must be an object, got an array of 1$/],
  ["a function", () => ({ ttl: 5 }), /^options must be an object, got a function$/],
];

const OR_TEXT = 'or a text such as "500ms", "30s" or "5m"';
const TTL = `must be a number of seconds of at least 0\\.001 \\(Infinity: never expires\\), ${OR_TEXT}, got`;
const ttls = (name: string): readonly Wrong[] =>
  (
    [
      ["0", 0, "0"],
      ["negative", -1, "-1"],
      ["NaN", Number.NaN, "NaN"],
      ["minus infinity", Number.NEGATIVE_INFINITY, "-Infinity"],
      ["less than a millisecond", 0.0009, "0.0009"],
      ["null", null, "null"],
      ["a string", "60", '"60"'],
      ["a bigint", 60n, "60n"],
      ["an object", {}, "an object \\(Object\\)"],
    ] as const
  ).map(([what, arrived, words]) => [what, arrived, new RegExp(`^${name} ${TTL} ${words}$`)]);

const windows = (name: string): readonly Wrong[] =>
  (
    [
      ["negative", -1, "-1"],
      ["NaN", Number.NaN, "NaN"],
      ["a string", "1", '"1"'],
      ["null", null, "null"],
    ] as const
  ).map(([what, arrived, words]) => [
    what,
    arrived,
    new RegExp(`^${name} must be a number of seconds of at least 0, ${OR_TEXT}, got ${words}$`),
  ]);

const flags = (name: string): readonly Wrong[] => [
  ["a number", 1, new RegExp(`^${name} must be true or false, got 1$`)],
  ["a string", "yes", new RegExp(`^${name} must be true or false, got "yes"$`)],
  ["null", null, new RegExp(`^${name} must be true or false, got null$`)],
];

const signals: readonly Wrong[] = [
  ["an object", {}, /^signal must be an AbortSignal, got an object \(Object\)$/],
  ["null", null, /^signal must be an AbortSignal, got null$/],
];

const KEY = { type: InvalidKeyError, code: "KEY_INVALID" };
const ARGUMENT = { type: ConfigError, code: "ARGUMENT_INVALID" };
const UNKNOWN = { type: ConfigError, code: "CONFIG_UNKNOWN_FIELD" };

const withKey: Record<string, Call> = {
  get: (c, key) => c.get(key),
  "getMany([key])": (c, key) => c.getMany(["fine", key]),
  set: (c, key) => c.set(key, 1),
  "setMany([[key, value]])": (c, key) =>
    c.setMany([
      ["fine", 1],
      [key, 1],
    ]),
  getOrSet: (c, key) => c.getOrSet(key, neverRun),
  exists: (c, key) => c.exists(key),
  "delete([key])": (c, key) => c.delete(["stored", key]),
  ttl: (c, key) => c.ttl(key),
  tags: (c, key) => c.tags(key),
};

const withTags: Record<string, (cache: XCache, tags: unknown) => unknown> = {
  set: (c, tags) => c.set("stored", 1, { tags } as never),
  setMany: (c, tags) => c.setMany({ stored: 1 }, { tags } as never),
  getOrSet: (c, tags) => c.getOrSet("fresh", neverRun, { tags } as never),
  invalidateTags: (c, tags) => c.invalidateTags(tags as never),
};

const withOptions: Record<string, (cache: XCache, options: unknown) => unknown> = {
  set: (c, options) => c.set("stored", 1, options as never),
  setMany: (c, options) => c.setMany({ stored: 1 }, options as never),
  getOrSet: (c, options) => c.getOrSet("fresh", neverRun, options as never),
};

const otherOptions: Record<string, (cache: XCache, options: unknown) => unknown> = {
  keys: (c, options) => listed(c.keys("*", options as never)),
  invalidatePattern: (c, options) => c.invalidatePattern("*", options as never),
  getStats: (c, options) => c.getStats(options as never),
  fuzzySearch: (c, options) => c.fuzzySearch("stored", options as never),
};

function neverRun(): never {
  throw new Error("the load was run");
}

interface Expected {
  readonly type: typeof InvalidKeyError | typeof ConfigError;
  readonly code: string;
}

/** One test per wrong argument. */
function refuses(operation: string, cases: readonly Wrong[], expected: Expected, call: Call): void {
  it.each(cases)(`${operation}: %s`, async (_what, arrived, words) => {
    const { cache } = memoryCache({ enableFuzzy: true });
    await cache.set("stored", { n: 1 }, { ttl: 77, tags: ["t"] });
    const events: string[] = [];
    for (const event of ["hit", "miss", "set", "delete", "invalidate", "error"] as const) {
      cache.on(event, () => events.push(event));
    }
    const error = await outcomeOf(() => call(cache, arrived as never));
    expect(error).toBeInstanceOf(expected.type);
    expect(error).toMatchObject({
      code: expected.code,
      message: expect.stringMatching(words),
      retryable: false,
    });
    expect((error as XCacheError).hint).not.toBe("");
    expect(events).toEqual([]);
    expect(await listed(cache.keys())).toEqual(["stored"]);
    expect(await cache.get("stored")).toEqual({ n: 1 });
    expect([await cache.ttl("stored"), await cache.tags("stored")]).toEqual([77, ["t"]]);
  });
}

/** What it rejects with. A promise is awaited; a synchronous throw counts only if there is no promise. */
async function outcomeOf(run: () => unknown): Promise<unknown> {
  let result: unknown;
  try {
    result = run();
  } catch (error) {
    return error;
  }
  return Promise.resolve(result).then(
    () => "it worked",
    (error: unknown) => error,
  );
}

describe("a wrong key", () => {
  for (const [operation, call] of Object.entries(withKey)) refuses(operation, names("key"), KEY, call);
  refuses("delete", [["an empty string", "", /^key must be a non-empty string, got ""$/]], KEY, (c, key) =>
    c.delete(key),
  );
});

describe("wrong keys", () => {
  const cases = notLists("keys must be a string or a list of strings");
  refuses("getMany", cases, ARGUMENT, (c, keys) => c.getMany(keys));
  refuses("delete", cases, ARGUMENT, (c, keys) => c.delete(keys));
});

describe("wrong entries", () => {
  const whole: readonly Wrong[] = [
    ["null", null, /^entries must be a Map, a list of \[key, value\] or an object, got null$/],
    ["a string", "ab", /^entries must be .* got "ab"$/],
    ["undefined", undefined, /^entries must be .* got undefined$/],
    ["a promise", Promise.resolve({ stored: 1 }), /^entries must be .* got an object \(Promise\)$/],
    ["an async iterable", new Blob([]).stream(), /^entries must be .* got an object \(ReadableStream\)$/],
  ];
  const pairs: readonly Wrong[] = [
    ["a lone key", ["stored", "k"], /^each entry must be \[key, value\], got "stored"$/],
    ["three of them", [["stored", 1, 2]], /^each entry must be \[key, value\], got an array of 3$/],
    ["a Set of keys", new Set(["stored"]), /^each entry must be \[key, value\], got "stored"$/],
    ["bytes", new Uint8Array([1]), /^each entry must be \[key, value\], got 1$/],
  ];
  refuses("setMany", [...whole, ...pairs], ARGUMENT, (c, entries) => c.setMany(entries));
});

describe("wrong tags", () => {
  for (const [operation, call] of Object.entries(withTags)) {
    refuses(operation, notLists("tags must be a list of strings"), ARGUMENT, call);
    refuses(`${operation}, in the list`, names("tag"), KEY, (c, tag) => call(c, ["fine", tag]));
  }
});

describe("wrong options", () => {
  for (const [operation, call] of Object.entries({ ...withOptions, ...otherOptions })) {
    refuses(operation, notOptions, ARGUMENT, call);
    const unknown: readonly Wrong[] = [["unknown", { tll: 5 }, /^unknown option "tll": /]];
    refuses(operation, unknown, UNKNOWN, call);
  }
  it("an unknown option is reported with the nearest known one, even if inherited", async () => {
    const { cache } = memoryCache();
    await expect(cache.set("k", 1, { TTL: 5 } as never)).rejects.toThrow(
      'unknown option "TTL": did you mean "ttl"?',
    );
    await expect(cache.set("k", 1, Object.create({ tag: ["a"] }))).rejects.toThrow('did you mean "tags"?');
    await expect(cache.set("k", 1, { staleIfError: 5 } as never)).rejects.toThrow(
      'unknown option "staleIfError"',
    );
  });
});

describe("a wrong ttl", () => {
  for (const [operation, call] of Object.entries(withOptions)) {
    refuses(operation, ttls("ttl"), ARGUMENT, (c, ttl) => call(c, { ttl }));
  }
});

describe("getOrSet", () => {
  it("rejects wrong options for a stored key as well as for an absent one", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    const wrong = [
      { ttl: -1 },
      { tll: 5 },
      { tll: undefined },
      { tags: 5 },
      { tags: [""] },
      { forceLoad: "yes" },
    ];
    for (const options of [...wrong, { lock: 1 }, { softTimeout: -1 }, { hardTimeout: "1" }, 5, null, []]) {
      const call = cache.getOrSet("k", neverRun, options as never);
      await expect(call, JSON.stringify(options)).rejects.toThrow(XCacheError);
    }
    const right = [
      {},
      { ttl: 1, tags: ["a"], lock: false, forceLoad: false },
      { tags: "one" },
      { softTimeout: 0 },
    ];
    for (const options of right) expect(await cache.getOrSet("k", neverRun, options as never)).toBe(1);
  });

  const loads: readonly Wrong[] = [
    ["undefined", undefined, /^load must be a function, got undefined$/],
    ["a value", "value", /^load must be a function, got "value"$/],
    ["a promise", Promise.resolve(1), /^load must be a function, got an object \(Promise\)$/],
  ];
  refuses("load", loads, ARGUMENT, (c, load) => c.getOrSet("fresh", load));
  for (const name of ["staleIfError", "staleWhileRevalidate", "softTimeout", "hardTimeout"]) {
    refuses(name, windows(name), ARGUMENT, (c, span) => c.getOrSet("fresh", neverRun, { [name]: span }));
  }
  for (const name of ["lock", "forceLoad"]) {
    refuses(name, flags(name), ARGUMENT, (c, flag) => c.getOrSet("fresh", neverRun, { [name]: flag }));
  }

  it("a wrong decision of a load is its own error, and nothing is stored", async () => {
    const { cache } = memoryCache();
    const decide = (wrong: (context: { setTtl(ttl: never): void; setTags(tags: never): void }) => void) =>
      cache.getOrSet("k", (context) => {
        wrong(context);
        return 1;
      });
    await expect(decide(({ setTtl }) => setTtl(0 as never))).rejects.toThrow(/^ttl must be .* got 0$/);
    await expect(decide(({ setTags }) => setTags(5 as never))).rejects.toThrow(/^tags must be .* got 5$/);
    await expect(decide(({ setTags }) => setTags([""] as never))).rejects.toThrow(/^tag must be .* got ""$/);
    expect(await cache.exists("k")).toBe(false);
  });
});

describe("a wrong pattern", () => {
  const open: readonly Wrong[] = [
    ["an open class", "user:[ab", /^pattern "user:\[ab" has a \[ at position 5/],
  ];
  const cases = names("pattern").filter(([what]) => what !== "undefined");
  refuses("keys", [...cases, ...open], KEY, (c, pattern) => listed(c.keys(pattern)));
  refuses("invalidatePattern", [...names("pattern"), ...open], KEY, (c, pattern) =>
    c.invalidatePattern(pattern),
  );
});

describe("a wrong signal", () => {
  refuses("keys", signals, ARGUMENT, (c, signal) => listed(c.keys("*", { signal })));
  refuses("invalidatePattern", signals, ARGUMENT, (c, signal) => c.invalidatePattern("*", { signal }));
  refuses("fuzzySearch", signals, ARGUMENT, (c, signal) => c.fuzzySearch("stored", { signal }));
});

describe("other operations", () => {
  refuses("namespace", names("namespace"), KEY, (c, name) => c.namespace(name));
  refuses("getStats", flags("exact"), ARGUMENT, (c, exact) => c.getStats({ exact }));
  const texts: readonly Wrong[] = [
    ["a number", 5, /text must be a string; got 5/],
    ["blank", "  ", /text must contain a visible character; got " {2}"/],
  ];
  refuses("fuzzySearch text", texts, ARGUMENT, (c, text) => c.fuzzySearch(text));
  const limits: readonly Wrong[] = [["0", 0, /limit must be a positive integer; got 0/]];
  refuses("fuzzySearch limit", limits, ARGUMENT, (c, limit) => c.fuzzySearch("stored", { limit }));
  const events: readonly Wrong[] = [
    ["unknown", "hits", /^event must be one of hit, miss, .*, got "hits"$/],
    ["inherited", "constructor", /^event must be one of .*, got "constructor"$/],
    ["a number", 5, /^event must be one of .*, got 5$/],
  ];
  refuses("on", events, ARGUMENT, (c, event) => c.on(event, () => {}));
  refuses("off", events, ARGUMENT, (c, event) => c.off(event, () => {}));
  const listeners: readonly Wrong[] = [
    ["undefined", undefined, /^listener must be a function, got undefined$/],
  ];
  refuses("on listener", listeners, ARGUMENT, (c, listener) => c.on("hit", listener));
  refuses("off listener", listeners, ARGUMENT, (c, listener) => c.off("hit", listener));
});

describe("how errors are raised", () => {
  it("operations that return a promise reject and never throw synchronously", async () => {
    const { cache } = memoryCache();
    const bad = null as never;
    const calls = [
      () => cache.get(bad),
      () => cache.getMany(bad),
      () => cache.set(bad, 1),
      () => cache.setMany(bad),
      () => cache.getOrSet(bad, bad),
      () => cache.exists(bad),
      () => cache.delete(bad),
      () => cache.ttl(bad),
      () => cache.tags(bad),
      () => cache.invalidateTags(bad),
      () => cache.invalidatePattern(bad),
      () => cache.getStats(bad),
      () => cache.fuzzySearch(bad, bad),
    ];
    for (const call of calls) {
      let returned: Promise<unknown> | undefined;
      expect(() => {
        returned = call();
      }).not.toThrow();
      expect(returned).toBeInstanceOf(Promise);
      await expect(returned).rejects.toBeInstanceOf(Error);
    }
  });

  it("keys, namespace, on and off, which return no promise, throw synchronously", () => {
    const { cache } = memoryCache();
    expect(() => cache.keys("")).toThrow(InvalidKeyError);
    expect(() => cache.namespace("")).toThrow(InvalidKeyError);
    expect(() => cache.on("no" as never, () => {})).toThrow(ConfigError);
    expect(() => cache.off("no" as never, () => {})).toThrow(ConfigError);
    expect(() => new XCache(5 as never)).toThrow(ConfigError);
  });

  it("a message shows no more of what arrived than a short scalar", async () => {
    const { cache } = memoryCache();
    const secret = `password ${"x".repeat(100)}`;
    const error = await cache.set("k", 1, secret as never).catch((thrown: Error) => thrown);
    expect((error as Error).message).toBe("options must be an object, got a string of 109 characters");
  });
});
