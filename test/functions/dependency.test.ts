// cachedDependency around a function that provides sessions, with a library of one method.
import { afterEach, describe, expect, expectTypeOf, test } from "vitest";
import type { CacheForSessions, SessionAdapter, SessionScope } from "../../src/core/db-session.ts";
import type { ConfigError } from "../../src/core/errors.ts";
import { setDefaultCache } from "../../src/functions/default-cache.ts";
import { dependencyWrapper } from "../../src/functions/dependency.ts";

interface Session {
  readonly id: number;
  readonly wraps?: Session;
}

const adapter: SessionAdapter<Session> = {
  name: "one-method",
  recognises: (session): session is Session => "id" in session,
  wrap: (session) => ({ id: session.id, wraps: session }),
};

function scene() {
  const scopes: SessionScope[] = [];
  const cachedDependency = dependencyWrapper({
    adapters: [adapter],
    trackSessions(scope) {
      scopes.push(scope);
      return { connection: () => ({}) as never, pooled: () => Promise.reject(new Error("unused")) };
    },
  });
  return { scopes, cachedDependency };
}

const cache: CacheForSessions & { set(): Promise<void>; delete(): Promise<number> } = {
  get: async () => undefined,
  getOrSet: async (_, load) => load({} as never),
  invalidateTags: async () => {},
  set: async () => {},
  delete: async () => 0,
};
const options = { cache, tableName: "users" };

afterEach(() => setDefaultCache(undefined));

describe("a dependency", () => {
  test("that returns a session returns the wrapped one", () => {
    const session: Session = { id: 1 };
    const wrapped = scene().cachedDependency(() => session, options)();
    expect(wrapped).toEqual({ id: 1, wraps: session });
  });

  test("that resolves to a session resolves to the wrapped one, and still rejects with its own error", async () => {
    const { cachedDependency } = scene();
    expect(await cachedDependency(async () => ({ id: 2 }), options)()).toMatchObject({ wraps: { id: 2 } });
    const failing = cachedDependency(async (): Promise<Session> => {
      throw new Error("no database");
    }, options);
    await expect(failing()).rejects.toThrow("no database");
  });

  test("keeps its name, its arguments and its this", async () => {
    const { cachedDependency } = scene();
    const pool = {
      base: 10,
      session: cachedDependency(function session(this: { base: number }, a: number, b: number): Session {
        return { id: this.base + a + b };
      }, options),
    };
    expect(pool.session(1, 2).id).toBe(13);
    expect(pool.session.name).toBe("session");
    expect(pool.session.length).toBe(2);
  });

  test("is tracked with its tables and its ttl, once", () => {
    const { scopes, cachedDependency } = scene();
    const get = cachedDependency(() => ({ id: 1 }), { cache, tableName: ["a", "b"], ttl: 5 });
    get();
    get();
    expect(scopes).toEqual([{ cache, tables: ["a", "b"], ttl: 5 }]);
  });

  test("without a cache uses the current default cache", () => {
    const { scopes, cachedDependency } = scene();
    const get = cachedDependency(() => ({ id: 1 }), { tableName: "a" });
    expect(get).toThrow(expect.objectContaining({ code: "NO_DEFAULT_CACHE" }) as ConfigError);
    setDefaultCache(cache);
    get();
    expect(scopes).toEqual([{ cache, tables: ["a"] }]);
  });
});

describe("an async generator", () => {
  function generator() {
    const log: string[] = [];
    async function* sessions(id: number) {
      log.push("open");
      try {
        const sent: unknown = yield { id } as Session;
        log.push(`sent ${String(sent)}`);
        return "over";
      } catch (error) {
        log.push(`caught ${(error as Error).message}`);
        throw error;
      } finally {
        log.push("close");
      }
    }
    return { log, sessions: scene().cachedDependency(sessions, options) };
  }

  test("is still one, so that frameworks can drive it, and starts on the first next()", async () => {
    const { log, sessions } = generator();
    expect(Object.prototype.toString.call(sessions)).toBe("[object AsyncGeneratorFunction]");
    const running = sessions(4);
    expect(log).toEqual([]);
    expect(await running.next()).toEqual({ done: false, value: { id: 4, wraps: { id: 4 } } });
    expect(log).toEqual(["open"]);
    await running.return("over");
  });

  test("runs to its end, and receives sent values", async () => {
    const { log, sessions } = generator();
    const running = sessions(4);
    await running.next();
    expect(await running.next("x")).toEqual({ done: true, value: "over" });
    expect(log).toEqual(["open", "sent x", "close"]);
  });

  test("cleans up when its consumer leaves early", async () => {
    const { log, sessions } = generator();
    for await (const session of sessions(4)) {
      expect(session.id).toBe(4);
      break;
    }
    expect(log).toEqual(["open", "close"]);
  });

  test("receives an error that its consumer throws into it", async () => {
    const { log, sessions } = generator();
    const running = sessions(4);
    await running.next();
    const failure = new Error("handler failed");
    await expect(running.throw(failure)).rejects.toBe(failure);
    expect(log).toEqual(["open", "caught handler failed", "close"]);
  });

  test("cleans up when its session belongs to no known library", async () => {
    const log: string[] = [];
    async function* strange() {
      try {
        yield { unknown: true };
      } finally {
        log.push("close");
      }
    }
    const running = scene().cachedDependency(strange, options)();
    await expect(running.next()).rejects.toMatchObject({ code: "ARGUMENT_INVALID" });
    expect(log).toEqual(["close"]);
  });

  test("returned by a plain function works too", async () => {
    const { sessions } = generator();
    const { cachedDependency } = scene();
    const outer = cachedDependency((id: number) => sessions(id), options);
    const running = outer(3);
    expect((await running.next()).value).toMatchObject({ wraps: { wraps: { id: 3 } } });
    expect(await running.return("over")).toEqual({ done: true, value: "over" });
  });
});

describe("cachedDependency refuses", () => {
  test.each([
    [{ cache }, "tableName must be a table's name"],
    [{ cache, tableName: "" }, "tableName must be"],
    [{ cache, tableName: [] }, "tableName must be"],
    [{ cache: {}, tableName: "a" }, "cache must be"],
    [{ cache, tableName: "a", ttl: 0 }, "ttl must be"],
    [{ cache, tableName: "a", adapter: {} }, "adapter must be"],
    [{ cache, tableName: "a", adapter: { wrap() {} } }, "adapter must be"],
    [{ cache, tableName: "a", adapter: null }, "adapter must be"],
    [{ cache, tablename: "a" }, "tablename"],
    [undefined, "the options must be"],
  ])("options like %o", (given, message) => {
    expect(() => scene().cachedDependency(() => ({ id: 1 }), given as never)).toThrow(message);
  });

  test("anything but a function", () => {
    expect(() => scene().cachedDependency({} as never, options)).toThrow("must be a function");
  });

  test.each([[undefined], [{ other: 1 }], ["text"]])(
    "%o as a session, naming what is expected",
    (session) => {
      const get = scene().cachedDependency(() => session, options);
      expect(get).toThrow(/expected a session of one-method/);
    },
  );
});

test("types are those of the dependency", () => {
  const { cachedDependency } = scene();
  const session: Session = { id: 1 };
  const plain = cachedDependency((_tenant: string) => session, options);
  expectTypeOf(plain).toEqualTypeOf<(tenant: string) => Session>();
  const later = cachedDependency(async (_a?: number) => session, options);
  expectTypeOf(later).toEqualTypeOf<(a?: number) => Promise<Session>>();
  const driven = cachedDependency(async function* (_id: number) {
    yield session;
  }, options);
  expectTypeOf(driven).toEqualTypeOf<(id: number) => AsyncGenerator<Session, void, unknown>>();
  // @ts-expect-error a table is needed
  expect(() => cachedDependency(() => session, { cache })).toThrow();
});
