// Types: checked by `npm run typecheck`, which compiles this file.
import { describe, expectTypeOf, it } from "vitest";
import {
  type CacheConfig,
  type CacheEvents,
  type CacheStats,
  type ComprehensiveMetrics,
  cached,
  type DetailedHealth,
  type Duration,
  type FuzzyMatch,
  type GetOrSetOptions,
  type HealthResult,
  type LoadContext,
  type SetOptions,
  XCache,
} from "../../../src/index.ts";

declare const cache: XCache;
interface User {
  readonly id: number;
}

/** Compiled, never run. */
const compiled = (_check: () => unknown): void => {};

describe("operations", () => {
  it("get returns the type the caller names, or unknown, and always allows for absence", () => {
    compiled(() => expectTypeOf(cache.get("k")).resolves.toEqualTypeOf<unknown>());
    compiled(() => expectTypeOf(cache.get<User>("k")).resolves.toEqualTypeOf<User | undefined>());
    compiled(() => expectTypeOf(cache.getMany<User>(["k"])).resolves.toEqualTypeOf<Map<string, User>>());
  });

  it("getOrSet infers from a load that takes its context", () => {
    compiled(() =>
      expectTypeOf(
        cache.getOrSet("k", async ({ setTtl, stale }) => {
          setTtl(5);
          expectTypeOf(stale).toBeUnknown();
          return { id: 1 };
        }),
      ).resolves.toEqualTypeOf<{ id: number }>(),
    );
  });

  it("getOrSet infers from the load, plain or async", () => {
    compiled(() => expectTypeOf(cache.getOrSet("k", () => 5)).resolves.toEqualTypeOf<number>());
    compiled(() =>
      expectTypeOf(cache.getOrSet("k", async () => ({ id: 1 }))).resolves.toEqualTypeOf<{ id: number }>(),
    );
    compiled(() =>
      expectTypeOf(cache.getOrSet("k", (): User | undefined => undefined)).resolves.toEqualTypeOf<
        User | undefined
      >(),
    );
    compiled(() =>
      cache.getOrSet<User>("k", (context) => {
        expectTypeOf(context).toEqualTypeOf<LoadContext<User>>();
        expectTypeOf(context.stale).toEqualTypeOf<User | undefined>();
        expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
        return { id: 1 };
      }),
    );
    // @ts-expect-error the load returns something else
    compiled(() => cache.getOrSet<User>("k", () => "text"));
  });

  it("set accepts any value, setMany a Map, pairs or an object", () => {
    compiled(() =>
      expectTypeOf(cache.set("k", { any: "thing" }, { ttl: 1, tags: ["t"] })).resolves.toBeVoid(),
    );
    compiled(() => cache.setMany(new Map([["k", 1]])));
    compiled(() => cache.setMany([["k", 1]] as const));
    compiled(() => cache.setMany({ k: 1 }));
    // @ts-expect-error a ttl is a number of seconds
    compiled(() => cache.set("k", 1, { ttl: "60" }));
    // @ts-expect-error no such option
    compiled(() => cache.set("k", 1, { tll: 60 }));
    // @ts-expect-error a list of strings holds no pairs
    compiled(() => cache.setMany(["k"]));
  });

  it("every other operation has the result type of the contract", () => {
    compiled(() => expectTypeOf(cache.exists("k")).resolves.toBeBoolean());
    compiled(() => expectTypeOf(cache.delete("k")).resolves.toBeNumber());
    compiled(() => expectTypeOf(cache.delete(["k"] as const)).resolves.toBeNumber());
    compiled(() => expectTypeOf(cache.ttl("k")).resolves.toEqualTypeOf<number | undefined>());
    compiled(() => expectTypeOf(cache.tags("k")).resolves.toEqualTypeOf<string[] | undefined>());
    compiled(() => expectTypeOf(cache.keys()).toEqualTypeOf<AsyncIterable<string>>());
    compiled(() => expectTypeOf(cache.invalidateTags("t")).resolves.toBeVoid());
    compiled(() => expectTypeOf(cache.invalidatePattern("*")).resolves.toBeNumber());
    compiled(() => expectTypeOf(cache.clear()).resolves.toBeVoid());
    compiled(() => expectTypeOf(cache.namespace("n")).toEqualTypeOf<XCache>());
    compiled(() => expectTypeOf(cache.getStats({ exact: true })).resolves.toEqualTypeOf<CacheStats>());
    compiled(() => expectTypeOf(cache.health()).resolves.toBeBoolean());
    compiled(() => expectTypeOf(cache.healthCheck()).resolves.toEqualTypeOf<HealthResult>());
    compiled(() => expectTypeOf(cache.detailedHealthCheck()).resolves.toEqualTypeOf<DetailedHealth>());
    compiled(() => expectTypeOf(cache.startMetricsCollection()).toBeVoid());
    compiled(() => expectTypeOf(cache.getComprehensiveMetrics()).toEqualTypeOf<ComprehensiveMetrics>());
    compiled(() => expectTypeOf(cache.fuzzySearch("k")).resolves.toEqualTypeOf<FuzzyMatch[]>());
    compiled(() => expectTypeOf(cache.connect()).resolves.toBeVoid());
    expectTypeOf<XCache>().toExtend<AsyncDisposable>();
  });

  it("a listener is typed by its event", () => {
    compiled(() => cache.on("set", (event) => expectTypeOf(event).toEqualTypeOf<CacheEvents["set"]>()));
    compiled(() => cache.on("error", ({ error }) => expectTypeOf(error).toEqualTypeOf<Error>()));
    compiled(() => expectTypeOf(cache.on("hit", async () => {})).toEqualTypeOf<XCache>());
    // @ts-expect-error no such event
    compiled(() => cache.on("hits", () => {}));
  });
});

describe("cached", () => {
  it("keeps the function's signature and adds its controls", () => {
    compiled(() => {
      const find = cached(async (id: number, full = false): Promise<User> => ({ id: full ? id : 0 }), {
        cache,
        name: "f",
      });
      expectTypeOf<Parameters<typeof find>>().toEqualTypeOf<[id: number, full?: boolean | undefined]>();
      expectTypeOf(find(1)).resolves.toEqualTypeOf<User>();
      expectTypeOf(find.key(1)).toBeString();
      expectTypeOf(find.invalidate(1)).resolves.toBeBoolean();
      expectTypeOf(find.refresh(1, true)).resolves.toEqualTypeOf<User>();
      // @ts-expect-error the argument is a number
      find("1");
    });
  });

  it("a plain function becomes one that returns a promise", () => {
    compiled(() => {
      const double = cached((n: number) => n * 2, { cache, name: "double" });
      expectTypeOf(double(1)).resolves.toEqualTypeOf<number>();
    });
  });

  it("the callbacks are typed by the arguments and the result", () => {
    compiled(() =>
      cached(async (id: number): Promise<User> => ({ id }), {
        cache,
        name: "f",
        tags: (id) => {
          expectTypeOf(id).toBeNumber();
          return [`user:${id}`];
        },
        when: (user) => {
          expectTypeOf(user).toEqualTypeOf<User>();
          return true;
        },
      }),
    );
  });
});

describe("options and configuration", () => {
  it("every field is optional, and undefined is not a value for it", () => {
    expectTypeOf<Record<never, never>>().toExtend<CacheConfig>();
    expectTypeOf<Record<never, never>>().toExtend<SetOptions>();
    expectTypeOf<CacheConfig["defaultTtl"]>().toEqualTypeOf<Duration | undefined>();
    expectTypeOf<GetOrSetOptions>().toExtend<SetOptions>();
    // @ts-expect-error leave it out instead
    compiled(() => new XCache({ defaultTtl: undefined }));
  });

  it("a duration is a number of seconds or a text with a unit, tags are one or a list", () => {
    compiled(() => new XCache({ defaultTtl: "5m", circuitBreaker: { resetTimeout: "500ms" } }));
    compiled(() => cache.set("k", 1, { ttl: "2h", tags: "users" }));
    compiled(() => cache.getOrSet("k", ({ setTtl }) => setTtl("7d"), { staleIfError: "1d", tags: ["a"] }));
    compiled(() => cached(async () => 1, { ttl: "30s", tags: "users", resultTags: () => "all" }));
    // @ts-expect-error no unit
    compiled(() => cache.set("k", 1, { ttl: "5" }));
    // @ts-expect-error no number
    compiled(() => cache.set("k", 1, { ttl: "soon" }));
  });

  it("accepts the configuration bare or under `config`, frozen or not", () => {
    const config = { kvUrl: "memory://", tables: { users: { ttl: 5, tags: ["a"] } } } as const;
    compiled(() => new XCache(config));
    compiled(() => new XCache({ config }));
    compiled(() => new XCache());
    // @ts-expect-error the names in code are camelCase
    compiled(() => new XCache({ kv_url: "memory://" }));
    // @ts-expect-error seconds are numbers
    compiled(() => new XCache({ defaultTtl: "5" }));
  });
});
