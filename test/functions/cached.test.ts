import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";
import { asCached, type Cached, cached } from "../../src/functions/cached.ts";
import { setDefaultCache } from "../../src/functions/default-cache.ts";
import { FakeCache } from "./fake-cache.ts";

let cache: FakeCache;
beforeEach(() => {
  cache = new FakeCache();
});
afterEach(() => setDefaultCache(undefined));

/** A promise that the test settles. */
function gate<T>(): { promise: Promise<T>; open(value: T): void } {
  let open!: (value: T) => void;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

const code = (expected: string): unknown =>
  expect.objectContaining({ constructor: ConfigError, code: expected });

describe("a wrapped function", () => {
  it("runs once for equal arguments and again for others", async () => {
    const fetchUser = vi.fn(async (id: number, options?: { full: boolean }) => ({ id, options }));
    const getUser = cached(fetchUser, { cache, name: "getUser" });
    expect(await getUser(1, { full: true })).toEqual({ id: 1, options: { full: true } });
    expect(await getUser(1, { full: true })).toEqual({ id: 1, options: { full: true } });
    expect(fetchUser).toHaveBeenCalledTimes(1);
    await getUser(1);
    await getUser(2);
    expect(fetchUser).toHaveBeenCalledTimes(3);
    expect([...cache.entries.keys()]).toEqual(["getUser(1,{full:true})", "getUser(1)", "getUser(2)"]);
  });

  it("runs once for concurrent calls, all of which get the error it throws", async () => {
    let runs = 0;
    const failure = new Error("mine");
    const load = cached(
      async function load() {
        runs++;
        throw failure;
      },
      { cache },
    );
    const outcomes = await Promise.allSettled([load(), load(), load()]);
    expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason)).toEqual([
      failure,
      failure,
      failure,
    ]);
    expect(runs).toBe(1);
  });

  it.each([
    ["an argument", {}],
    ["an input of the key", { key: (query: { id: number }) => query.id }],
  ])("stores what was asked for when %s is changed before it runs", async (_, options) => {
    const find = cached(async (query: { id: number }) => `user ${query.id}`, {
      cache,
      name: "find",
      ...options,
    });
    const query = { id: 1 };
    const finding = find(query);
    query.id = 2;
    expect(await finding).toBe("user 1");
    expect(cache.entries.size).toBe(1);
    expect(await find({ id: 1 })).toBe("user 1");
    const unkeyable = { id: 3 };
    const other = find(unkeyable);
    Object.assign(unkeyable, { id: () => 3 });
    expect(await other).toBe("user 3");
    expect(cache.entries.size).toBe(2);
    const spoilt = cached(async (list: number[]) => list.push(9), { cache, name: "spoilt" });
    expect([await spoilt([1]), await spoilt([1])]).toEqual([2, 2]);
    expect(cache.entries.size).toBe(3);
  });

  it("stores nothing when an object that cannot be copied is changed before it runs", async () => {
    class Query {
      id = 1;
    }
    const find = cached(async ({ id }: Query) => `user ${id}`, { cache, name: "find", key: ({ id }) => id });
    const query = new Query();
    const finding = find(query);
    query.id = 2;
    await finding;
    expect(cache.entries.size).toBe(0);
  });

  it("rejects when the function throws synchronously", async () => {
    const broken = cached(
      function broken(): number {
        throw new TypeError("at once");
      },
      { cache },
    );
    await expect(broken()).rejects.toThrow(new TypeError("at once"));
    await expect(broken.uncached()).rejects.toThrow(new TypeError("at once"));
    await expect(broken.refresh()).rejects.toThrow(new TypeError("at once"));
  });

  it("rejects for an argument that cannot be encoded, without running", async () => {
    const run = vi.fn(async (_: unknown) => 1);
    const wrapped = cached(run, { cache, name: "run" });
    await expect(wrapped(() => 1)).rejects.toThrow("run(): argument 1 is a function");
    await expect(wrapped.refresh(() => 1)).rejects.toThrow(ConfigError);
    await expect(wrapped.invalidate(() => 1)).rejects.toThrow(ConfigError);
    expect(run).not.toHaveBeenCalled();
  });

  it("keeps the name, the number of parameters and `this`", async () => {
    const store = {
      base: 10,
      add: cached(
        async function add(this: { base: number }, n: number) {
          return this.base + n;
        },
        { cache },
      ),
    };
    expect(store.add.name).toBe("add");
    expect(store.add.length).toBe(1);
    expect(await store.add(1)).toBe(11);
    expect(await store.add.uncached.call({ base: 20 }, 1)).toBe(21);
    expect(await store.add.refresh.call({ base: 30 }, 1)).toBe(31);
    expect(await store.add(1)).toBe(31);
  });

  it("returns undefined and does not store it", async () => {
    const nothing = vi.fn(async () => undefined);
    const wrapped = cached(nothing, { cache, name: "nothing" });
    expect([await wrapped(), await wrapped()]).toEqual([undefined, undefined]);
    expect(nothing).toHaveBeenCalledTimes(2);
  });

  it("gets the strings of a tagged template with their raw form", async () => {
    const join = vi.fn(async (strings: TemplateStringsArray, ...values: unknown[]) =>
      String.raw(strings, ...values),
    );
    const joined = cached(join, { cache, name: "joined" });
    expect([await joined`a${1}\n`, await joined`a${1}\n`, await joined`a${2}\n`]).toEqual([
      "a1\\n",
      "a1\\n",
      "a2\\n",
    ]);
    expect(join).toHaveBeenCalledTimes(2);
  });

  it("gets a match of a regular expression and hidden properties whole when `key` chooses a part of them", async () => {
    const idOf = cached(async (match: RegExpMatchArray) => match.groups?.id, {
      cache,
      name: "idOf",
      key: ([text]) => text,
    });
    expect(await idOf(/u(?<id>\d)/.exec("u1") as RegExpMatchArray)).toBe("1");
    const context = Object.defineProperty({ id: 1 }, "secret", { value: 5 }) as {
      id: number;
      secret: number;
    };
    const secretOf = cached(async ({ secret }: typeof context) => secret, {
      cache,
      name: "secretOf",
      key: ({ id }) => id,
    });
    expect(await secretOf(context)).toBe(5);
  });

  it("is the same in curried form", async () => {
    const double = cached({ cache, ttl: 60 })(async function twice(n: number) {
      return 2 * n;
    });
    expect(await double(2)).toBe(4);
    expect(double.key(2)).toBe("twice(2)");
    expect(cache.seen).toEqual([{ ttl: 60 }]);
    const one = async (): Promise<number> => 1;
    const two = async (): Promise<number> => 2;
    expect(await Promise.all([one, two].map(cached({ cache })).map((wrapped) => wrapped()))).toEqual([1, 2]);
  });
});

describe("the options", () => {
  it("of getOrSet are passed on, tags as a list", async () => {
    const options = {
      ttl: 5,
      staleIfError: 1,
      staleWhileRevalidate: 2,
      softTimeout: 3,
      hardTimeout: 4,
      lock: false,
    };
    const wrapped = cached(async (n: number) => n, { cache, name: "n", tags: ["numbers"], ...options });
    await wrapped(1);
    expect(cache.seen).toEqual([{ ...options, tags: ["numbers"] }]);
  });

  it("give the cache a load with a parameter only if it may name tags", async () => {
    const lengths: number[] = [];
    const getOrSet = cache.getOrSet.bind(cache);
    cache.getOrSet = (key, load, options) => {
      lengths.push(load.length);
      return getOrSet(key, load, options);
    };
    const run = async (): Promise<number> => 1;
    await cached(run, { cache, tags: ["t"] })();
    await cached(run, { cache, resultTags: () => [] }).refresh();
    await cached(run, { cache, when: () => true }).refresh();
    expect(lengths).toEqual([0, 1, 0]);
  });

  it("make tags from the arguments and from the result", async () => {
    const wrapped = cached(async (id: number) => ({ id, team: 7 }), {
      cache,
      name: "user",
      tags: (id) => [`user:${id}`],
      resultTags: (user, id) => [`team:${user.team}`, `again:${id}`],
    });
    await wrapped(1);
    expect(cache.seen).toEqual([{ tags: ["user:1"] }]);
    expect(cache.entries.get("user(1)")?.tags).toEqual(["user:1", "team:7", "again:1"]);
  });

  it("keep a result that `when` refuses out of the cache, and return it", async () => {
    const tagged = vi.fn(() => ["users"]);
    const wrapped = cached(async (id: number) => (id > 1 ? { id } : null), {
      cache,
      name: "user",
      when: (user, id) => user !== null && id !== 3,
      resultTags: tagged,
    });
    expect([await wrapped(1), await wrapped(2), await wrapped(3)]).toEqual([null, { id: 2 }, { id: 3 }]);
    expect([...cache.entries.keys()]).toEqual(["user(2)"]);
    expect(tagged.mock.calls).toEqual([[{ id: 2 }, 2]]);
  });

  it("keep a result out of the cache for any falsy answer of `when`, and reject a promise, which is always truthy", async () => {
    const refused = [undefined, null, 0, "", Number.NaN];
    const answers = [...refused, "Ada", 1];
    const stored = cached(async (at: number) => at, {
      cache,
      name: "stored",
      when: (at) => answers[at] as unknown as boolean,
    });
    for (const at of answers.keys()) expect(await stored(at)).toBe(at);
    expect([...cache.entries.keys()]).toEqual(["stored(5)", "stored(6)"]);

    const late = async (): Promise<boolean> => Promise.reject(new Error("nobody waits for this"));
    const wrapped = cached(async () => 1, { cache, name: "late", when: late as unknown as () => boolean });
    await expect(wrapped()).rejects.toThrow(
      "cached(): when must return true or false at once; got a promise.",
    );
  });

  it("let `key` identify a call, still under the function's name", async () => {
    const run = vi.fn(async (user: { id: number; noise?: unknown }, _log: () => void) => user.id);
    const wrapped = cached(run, { cache, name: "run", key: (user) => `user:${user.id}` });
    await wrapped({ id: 1, noise: Symbol() }, () => {});
    await wrapped({ id: 1 }, () => {});
    expect(run).toHaveBeenCalledTimes(1);
    expect(wrapped.key({ id: 1 }, () => {})).toBe('run("user:1")');
    const byParts = cached(run, { cache, name: "byParts", key: (user) => [user.id, "x"] });
    expect(byParts.key({ id: 1 }, () => {})).toBe('byParts([1,"x"])');
  });

  it("are refused when they are invalid", () => {
    const run = async (): Promise<number> => 1;
    for (const [options, message] of [
      [{ name: "" }, 'cached(): name must be a non-empty string; got "".'],
      [{ name: 1 }, "cached(): name must be a non-empty string; got 1."],
      [
        { tags: 1 },
        "cached(): tags must be a string, a list of strings or a function that returns them; got 1.",
      ],
      [
        { tags: [1] },
        "cached(): tags must be a string, a list of strings or a function that returns them; got an array of 1.",
      ],
      [{ when: true }, "cached(): when must be a function; got true."],
      [{ key: "id" }, 'cached(): key must be a function; got "id".'],
      [{ cache: {} }, "cached(): cache must be a cache; got an object (Object)."],
    ] as const) {
      expect(() => cached(run, options as object)).toThrow(message);
      expect(() => cached(options as object)).toThrow(code("ARGUMENT_INVALID"));
    }
    expect(() => cached({})(1 as never)).toThrow("cached(): expected a function or a method; got 1.");
  });
});

describe("invalidate", () => {
  it("removes exactly this call's result and returns whether there was one", async () => {
    const run = vi.fn(async (id: number) => id);
    const wrapped = cached(run, { cache, name: "run" });
    await wrapped(1);
    await wrapped(2);
    expect(await wrapped.invalidate(1)).toBe(true);
    expect(await wrapped.invalidate(1)).toBe(false);
    await wrapped(2);
    expect(run).toHaveBeenCalledTimes(2);
    await wrapped(1);
    expect(run).toHaveBeenCalledTimes(3);
  });
});

describe("refresh", () => {
  it("runs the function and stores the result, while the old one stays readable", async () => {
    const second = gate<string>();
    const results = [Promise.resolve("old"), second.promise];
    const wrapped = cached(async (_: number) => results.shift(), {
      cache,
      name: "run",
      ttl: 9,
      tags: () => ["t"],
    });
    await wrapped(1);
    const refreshed = wrapped.refresh(1);
    expect(await wrapped(1)).toBe("old");
    second.open("new");
    expect(await refreshed).toBe("new");
    expect(await wrapped(1)).toBe("new");
    expect(cache.seen[1]).toEqual({ ttl: 9, tags: ["t"], forceLoad: true });
  });

  it("does not bring back a result invalidated while the function ran", async () => {
    const answer = gate<string>();
    const wrapped = cached(() => answer.promise, { cache, name: "run" });
    const refreshed = wrapped.refresh();
    await Promise.resolve();
    await wrapped.invalidate();
    answer.open("read before the invalidation");
    expect(await refreshed).toBe("read before the invalidation");
    expect(cache.entries.size).toBe(0);
  });
});

describe("uncached", () => {
  it("runs the function and leaves the cache alone", async () => {
    const run = vi.fn(async (id: number) => id);
    const wrapped = cached(run, { cache, name: "run" });
    expect([await wrapped.uncached(1), await wrapped.uncached(1)]).toEqual([1, 1]);
    expect(run).toHaveBeenCalledTimes(2);
    expect(cache.seen).toEqual([]);
  });
});

describe("warm", () => {
  it("runs the calls that have no result yet, a limited number at a time", async () => {
    let running = 0;
    let most = 0;
    const run = vi.fn(async (_id: number, _lang: string) => {
      most = Math.max(most, ++running);
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      running--;
      return true;
    });
    const wrapped = cached(run, { cache, name: "run" });
    await wrapped(1, "en");
    function* list(): Generator<[number, string]> {
      for (let id = 1; id <= 20; id++) yield [id, "en"];
    }
    await wrapped.warm(list(), { concurrency: 3 });
    expect(run).toHaveBeenCalledTimes(20);
    expect(cache.entries.size).toBe(20);
    expect(most).toBe(3);
  });

  it("tries every call and then rejects with all the failures", async () => {
    const onlyEven = async (id: number): Promise<number> => {
      if (id % 2) throw new Error(`no ${id}`);
      return id;
    };
    const wrapped = cached(onlyEven, { cache });
    const outcome = await wrapped.warm([[1], [2], [3], [4]]).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(AggregateError);
    expect((outcome as AggregateError).message).toBe("2 of 4 calls of onlyEven() failed while warming.");
    expect((outcome as AggregateError).errors).toEqual([new Error("no 1"), new Error("no 3")]);
    expect([...cache.entries.keys()]).toEqual(["onlyEven(2)", "onlyEven(4)"]);
  });

  it("refuses unknown options, and calls that are not argument lists", async () => {
    const wrapped = cached(async (id: string) => id, { cache, name: "run" });
    await expect(wrapped.warm([["a"]], { concurency: 3 } as never)).rejects.toThrow("concurrency");
    const outcome = await wrapped.warm(["a", ["b"]] as never).catch((error: unknown) => error);
    expect((outcome as AggregateError).errors).toEqual([
      expect.objectContaining({ code: "ARGUMENT_INVALID" }),
    ]);
    expect([...cache.entries.keys()]).toEqual(['run("b")']);
  });

  it("refuses a concurrency that is not a positive integer", async () => {
    const wrapped = cached(async (id: number) => id, { cache, name: "run" });
    for (const concurrency of [0, -1, 1.5, Number.NaN]) {
      await expect(wrapped.warm([[1]], { concurrency })).rejects.toThrow(code("ARGUMENT_INVALID"));
    }
  });
});

describe("the default cache", () => {
  it("is looked up at each call, so it may be set after wrapping and changed", async () => {
    const wrapped = cached(async (id: number) => id, { name: "run" });
    await expect(wrapped(1)).rejects.toThrow(code("NO_DEFAULT_CACHE"));
    await expect(wrapped.invalidate(1)).rejects.toThrow(code("NO_DEFAULT_CACHE"));
    expect(wrapped.key(1)).toBe("run(1)");
    expect(await wrapped.uncached(1)).toBe(1);
    setDefaultCache(cache);
    await wrapped(1);
    expect(cache.entries.size).toBe(1);
    const other = new FakeCache();
    setDefaultCache(other);
    await wrapped(1);
    expect(other.entries.size).toBe(1);
  });

  it("is not used by a function that names its own", async () => {
    const other = new FakeCache();
    setDefaultCache(other);
    await cached(async () => 1, { cache, name: "run" })();
    expect([cache.entries.size, other.entries.size]).toEqual([1, 0]);
  });
});

describe("invalid input is refused at once", () => {
  const load = async (): Promise<number> => 1;

  it.each([null, 0, 5, "str", true, Symbol("s"), 5n, ["list"]])("options that are %s", (options) => {
    expect(() => cached(options as never)).toThrow(code("ARGUMENT_INVALID"));
    expect(() => cached(load, options as never)).toThrow(code("ARGUMENT_INVALID"));
    expect(() => cached(load, options as never)).toThrow(/^cached\(\): the options must be an object; got /);
  });

  it("but missing options and a missing second argument are fine", () => {
    expect(typeof cached()).toBe("function");
    expect(typeof cached(undefined as never)).toBe("function");
    expect(typeof cached(load, undefined)).toBe("function");
  });

  it.each<[string, object, string, string]>([
    ["ttl", { ttl: -5 }, "ARGUMENT_INVALID", "ttl must be a number of seconds of at least 0.001"],
    ["ttl", { ttl: "60" }, "ARGUMENT_INVALID", "ttl must be a number of seconds"],
    ["staleIfError", { staleIfError: -1 }, "ARGUMENT_INVALID", "staleIfError must be a number of seconds"],
    [
      "staleWhileRevalidate",
      { staleWhileRevalidate: Number.NaN },
      "ARGUMENT_INVALID",
      "staleWhileRevalidate must be a number of seconds",
    ],
    ["softTimeout", { softTimeout: "1" }, "ARGUMENT_INVALID", "softTimeout must be a number of seconds"],
    ["hardTimeout", { hardTimeout: null }, "ARGUMENT_INVALID", "hardTimeout must be a number of seconds"],
    ["lock", { lock: 1 }, "ARGUMENT_INVALID", "lock must be true or false"],
    ["tags", { tags: [""] }, "KEY_INVALID", "tag must be a non-empty string"],
    ["an unknown name", { ttl: 5, nonsense: true }, "CONFIG_UNKNOWN_FIELD", 'unknown option "nonsense"'],
    ["a misspelt name", { tll: 5 }, "CONFIG_UNKNOWN_FIELD", 'did you mean "ttl"?'],
    ["cache", { cache: { getOrSet: 1 } }, "ARGUMENT_INVALID", "cached(): cache must be a cache"],
    ["cache", { cache: null }, "ARGUMENT_INVALID", "cached(): cache must be a cache"],
  ])("an invalid option: %s", (_, options, errorCode, message) => {
    for (const act of [
      () => cached(load, { cache, ...options } as never),
      () => cached({ cache, ...options } as never),
    ]) {
      expect(act).toThrow(expect.objectContaining({ code: errorCode }));
      expect(act).toThrow(message);
    }
  });

  it("but every valid option is accepted", () => {
    const options = {
      cache,
      name: "all",
      key: () => 1,
      tags: ["t"],
      resultTags: () => [],
      when: () => true,
      ttl: 5,
      staleIfError: 1,
      staleWhileRevalidate: 1,
      softTimeout: 1,
      hardTimeout: 2,
      lock: false,
    };
    expect(() => cached(load, options)).not.toThrow();
  });

  it("a default cache that is not a cache", () => {
    for (const wrong of [5, null, "cache", {}, { getOrSet: () => 1 }, () => cache]) {
      expect(() => setDefaultCache(wrong as never)).toThrow(code("ARGUMENT_INVALID"));
    }
    expect(() => setDefaultCache(cache)).not.toThrow();
    expect(() => setDefaultCache(undefined)).not.toThrow();
  });

  it("legacy decorators, with or without options", () => {
    class Users {}
    expect(() => cached(Users.prototype as never, "find" as never)).toThrow(code("ARGUMENT_INVALID"));
  });
});

describe("names", () => {
  it("are required at once", () => {
    expect(() => cached(async () => 1, { cache })).toThrow(code("NAME_REQUIRED"));
    expect(() => cached({ cache })(async () => 1)).toThrow(code("NAME_REQUIRED"));
    expect(() => cached(async () => 1)).toThrow(code("NAME_REQUIRED"));
  });

  it("belong to one function per cache; the same function may be wrapped again", () => {
    const load = async (): Promise<number> => 1;
    const other = async (): Promise<number> => 2;
    cached(load, { cache });
    cached(load, { cache, ttl: 5 });
    cached(other, { cache });
    expect(() => cached(other, { cache, name: "load" })).toThrow(code("NAME_TAKEN"));
    expect(() => cached(other, { cache, name: "load" })).toThrow('already cached as "load"');
    expect(() => cached(other, { cache: new FakeCache(), name: "load" })).not.toThrow();
  });

  it("in the default cache are claimed at the first use", async () => {
    setDefaultCache(cache);
    const first = cached(async () => 1, { name: "load" });
    const second = cached(async () => 2, { name: "load" });
    expect(await first()).toBe(1);
    await expect(second()).rejects.toThrow(code("NAME_TAKEN"));
    await expect(second.refresh()).rejects.toThrow(code("NAME_TAKEN"));
    await expect(second.invalidate()).rejects.toThrow(code("NAME_TAKEN"));
    const other = new FakeCache();
    setDefaultCache(other);
    expect(await second()).toBe(2);
    await expect(first()).rejects.toThrow(code("NAME_TAKEN"));
  });
});

describe("types", () => {
  it("keep arguments, result and `this`, and add the controls", () => {
    const fetchUser = async (
      id: number,
      lang?: string,
    ): Promise<{ id: number; lang: string | undefined }> => ({ id, lang });
    const getUser = cached(fetchUser, {
      cache,
      name: "a",
      tags: (id) => [`${id.toFixed()}`],
      when: (user) => user.id > 0,
    });
    expectTypeOf(getUser).parameters.toEqualTypeOf<Parameters<typeof fetchUser>>();
    expectTypeOf(getUser).returns.toEqualTypeOf<Promise<{ id: number; lang: string | undefined }>>();
    expectTypeOf(getUser.key).parameters.toEqualTypeOf<Parameters<typeof fetchUser>>();
    expectTypeOf(getUser.invalidate).returns.toEqualTypeOf<Promise<boolean>>();
    expectTypeOf(getUser.refresh).returns.toEqualTypeOf<Promise<{ id: number; lang: string | undefined }>>();
    expectTypeOf(getUser.uncached).parameters.toEqualTypeOf<Parameters<typeof fetchUser>>();
    expectTypeOf(getUser.warm).parameter(0).toEqualTypeOf<Iterable<Parameters<typeof fetchUser>>>();

    const sync = cached((n: number) => n, { cache, name: "b" });
    expectTypeOf(sync).returns.toEqualTypeOf<Promise<number>>();
    const either = cached((n: number): number | Promise<number> => n, { cache, name: "c" });
    expectTypeOf(either).returns.toEqualTypeOf<Promise<number>>();
    const generic = cached(async <T>(value: T): Promise<T> => value, { cache, name: "d" });
    expectTypeOf(generic("x")).toEqualTypeOf<Promise<string>>();
    const defaulted = cached(async (id: number, full = false) => (full ? id : 0), { cache, name: "h" });
    expectTypeOf(defaulted).parameters.toEqualTypeOf<[id: number, full?: boolean | undefined]>();
    expectTypeOf(defaulted(1)).toEqualTypeOf<Promise<number>>();
    const bound = cached(async function e(this: { base: number }) {
      return this.base;
    });
    expectTypeOf<ThisParameterType<typeof bound>>().toEqualTypeOf<{ base: number }>();
    expectTypeOf(cached({ cache })(fetchUser)).toEqualTypeOf<Cached<typeof fetchUser>>();
    const curried = cached({ cache, name: "i" })(async <T>(value: T): Promise<T> => value);
    expectTypeOf(curried("x")).toEqualTypeOf<Promise<string>>();
    async function listed<T>(value: T): Promise<T[]> {
      return [value];
    }
    expectTypeOf(cached({ cache })(listed)(1)).toEqualTypeOf<Promise<number[]>>();
    class Lists {
      @cached({ cache })
      async of<T>(value: T): Promise<T[]> {
        return [value];
      }
    }
    expectTypeOf(new Lists().of("x")).toEqualTypeOf<Promise<string[]>>();

    // @ts-expect-error the callback of the curried form wants a string where the function takes a number
    expect(() => cached({ cache, name: "f", tags: (id: string) => [id] })(fetchUser)).not.toThrow();
    cached({
      cache,
      name: "g",
      tags: (id: number) => [`${id}`],
      when: (user: { id: number }) => user.id > 0,
    })(fetchUser);
    // @ts-expect-error the result has no such field
    cached(fetchUser, { cache, name: "a", when: (user) => user.missing });
    // @ts-expect-error refresh() is how a load is forced
    expect(() => cached(fetchUser, { cache, name: "a", forceLoad: true })).toThrow(
      'unknown option "forceLoad"',
    );
  });
});

describe("asCached", () => {
  it("gives the controls of a wrapped function and refuses any other", () => {
    const plain = async (): Promise<number> => 1;
    const wrapped = cached(plain, { cache });
    expect(asCached(wrapped)).toBe(wrapped);
    expect(() => asCached(plain)).toThrow(code("ARGUMENT_INVALID"));
  });
});
