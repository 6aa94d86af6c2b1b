// The module for Nest in real applications over Express: injection, closing, cached responses and methods.
import "reflect-metadata";
import {
  Controller,
  Get,
  HttpException,
  type INestApplication,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
  Sse,
  StreamableFile,
  type Type,
  VersioningType,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { of } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";
import { ConfigError, ConnectionError } from "../../src/core/errors.ts";
import {
  CacheMethod,
  CacheResponse,
  type CacheResponseOptions,
  InjectXCache,
  XCacheModule,
  xcacheToken,
} from "../../src/ecosystem/nest.ts";
import { setDefaultCache } from "../../src/functions/default-cache.ts";
import { ChaosBackend } from "../../src/testing/index.ts";
import { XCache } from "../../src/xcache.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { redisCaches } from "../support/redis-caches.ts";
import { failingCache } from "./failing-cache.ts";

const caches = redisCaches({ operationTimeout: 10 });

/** Applies decorators as a compiler with `experimentalDecorators` does. */
function decorate(type: Type, method: string, ...decorators: MethodDecorator[]): void {
  const prototype: object = type.prototype;
  let descriptor = Object.getOwnPropertyDescriptor(prototype, method)!;
  for (const one of decorators.reverse())
    descriptor = (one(prototype, method, descriptor) as never) ?? descriptor;
  Object.defineProperty(prototype, method, descriptor);
}

async function start(
  imports: unknown[],
  controllers: Type[] = [],
  providers: Type[] = [],
): Promise<INestApplication> {
  class Root {}
  Module({ imports: imports as never[], controllers, providers })(Root);
  const app = await NestFactory.create(Root, { logger: false, abortOnError: false });
  onTestFinished(() => app.close());
  return app;
}

async function serve(app: INestApplication): Promise<(path: string, init?: RequestInit) => Promise<string>> {
  await app.listen(0, "127.0.0.1");
  const url = await app.getUrl();
  return async (path, init) => (await fetch(url + path, init)).text();
}

const memory = { kvUrl: "memory://" };

describe("the module", () => {
  test("makes a cache injectable by its class everywhere, and closes it with the application", async () => {
    class Service {
      readonly cache: XCache;
      constructor(cache: XCache) {
        this.cache = cache;
      }
    }
    Injectable()(Service);
    Inject(XCache)(Service, undefined, 0);
    class Feature {}
    Module({ providers: [Service], exports: [Service] })(Feature);
    const app = await start([XCacheModule.forRoot({ cache: memory }), Feature]);
    const { cache } = app.get(Service);
    expect(cache).toBe(app.get(XCache));
    await cache.set("key", 1);
    await app.close();
    await expect(cache.get("key")).rejects.toThrow(/disconnect/);
  });

  test("uses an existing cache, and leaves it open if asked to", async () => {
    const { cache } = memoryCache();
    const app = await start([XCacheModule.forRoot({ cache, keepOpen: true })]);
    expect(app.get(XCache)).toBe(cache);
    await app.close();
    await cache.set("key", 1);
    expect(await cache.get("key")).toBe(1);
  });

  test("distinguishes several caches by name", async () => {
    class Service {
      readonly reports: XCache;
      constructor(reports: XCache) {
        this.reports = reports;
      }
    }
    Injectable()(Service);
    InjectXCache("reports")(Service, undefined, 0);
    const app = await start(
      [XCacheModule.forRoot({ cache: memory }), XCacheModule.forRoot({ cache: memory, name: "reports" })],
      [],
      [Service],
    );
    const { reports } = app.get(Service);
    expect(reports).toBe(app.get(xcacheToken("reports")));
    expect(reports).not.toBe(app.get(XCache));
    const both = [reports, app.get(XCache)];
    await app.close();
    for (const cache of both) await expect(cache.get("key")).rejects.toThrow(/disconnect/);
  });

  test("can be configured by a factory with dependencies", async () => {
    class Settings {
      readonly prefix = "from-settings";
    }
    class SettingsModule {}
    Module({ providers: [Settings], exports: [Settings] })(SettingsModule);
    const server = caches.server.url;
    const app = await start([
      XCacheModule.forRootAsync<[Settings]>({
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: async (settings) => ({ kvUrl: server, keyPrefix: settings.prefix }),
      }),
    ]);
    await app.get(XCache).set("key", 1);
    expect(await caches.server.cli("EXISTS", "from-settings:key")).toBe("1");
  });

  test("rejects invalid options immediately, including a misplaced configuration", () => {
    expect(() => XCacheModule.forRoot(memory as never)).toThrow(/"kvUrl"/);
    expect(() => XCacheModule.forRootAsync({ useFactory: () => memory, global: true } as never)).toThrow(
      /"global"/,
    );
  });

  test("with an invalid configuration does not start", async () => {
    await expect(start([XCacheModule.forRoot({ cache: { defaultTtl: -1 } })])).rejects.toBeInstanceOf(
      ConfigError,
    );
  });

  test("closes with the application even if its store does not respond", async () => {
    const backend = new ChaosBackend(new MemoryBackend());
    const app = await start([XCacheModule.forRoot({ cache: { backend } })]);
    await app.get(XCache).set("key", 1);
    backend.fail("all", new ConnectionError("refused"));
    await expect(app.close()).resolves.toBeUndefined();
    expect(backend.calls("disconnect")).toBe(1);
  });

  test("that is not global is visible where it is imported", async () => {
    class Feature {}
    Module({ imports: [XCacheModule.forRoot({ cache: memory, isGlobal: false })] })(Feature);
    class Outside {}
    Injectable()(Outside);
    Inject(XCache)(Outside, undefined, 0);
    await expect(start([Feature], [], [Outside])).rejects.toThrow(/XCache/);
  });
});

describe("a cached response", () => {
  /** A controller whose handler is given, and how often it ran. */
  function controllerOf(handle: (id: string) => unknown, options?: CacheResponseOptions | false) {
    const calls: string[] = [];
    class Items {
      find(id: string): unknown {
        calls.push(id);
        return handle(id);
      }
    }
    Controller("items")(Items);
    Param("id")(Items.prototype, "find", 0);
    decorate(Items, "find", Get(":id"), CacheResponse(options));
    return { Items, calls };
  }

  async function ask(
    handle: (id: string) => unknown,
    options?: CacheResponseOptions | false,
    cache?: XCache,
  ) {
    const { Items, calls } = controllerOf(handle, options);
    const app = await start([XCacheModule.forRoot({ cache: cache ?? memory })], [Items]);
    return { get: await serve(app), calls, cache: app.get(XCache) };
  }

  test("is computed once per URL", async () => {
    const { get, calls } = await ask(async (id) => ({ id }));
    for (const path of ["/items/1", "/items/1", "/items/1?q", "/items/2"]) {
      expect(await get(path)).toBe(JSON.stringify({ id: path[7] }));
    }
    expect(calls).toEqual(["1", "1", "2"]);
  });

  test("is shared by processes, and invalidated by its tags in all of them", async () => {
    const options: CacheResponseOptions = {
      ttl: 60,
      tags: (request) => [`at:${request.url}`],
      // The servers of this test have different ports, and with them hosts.
      key: (request) => request.url,
    };
    const [one, other] = [
      await ask(() => "text", options, caches.open()),
      await ask(() => "text", options, caches.open()),
    ];
    expect([await one.get("/items/1"), await one.get("/items/1"), await other.get("/items/1")]).toEqual([
      "text",
      "text",
      "text",
    ]);
    expect([one.calls, other.calls]).toEqual([["1"], []]);
    await other.cache.invalidateTags("at:/items/1");
    await one.get("/items/1");
    expect([one.calls, other.calls]).toEqual([["1", "1"], []]);
  });

  test("belongs to its API version, even if URL, class and method have the same names", async () => {
    const controllers = ["1", "2"].map((version) => {
      class Items {
        find() {
          return `version ${version}`;
        }
      }
      Controller({ path: "items", version })(Items);
      decorate(Items, "find", Get(), CacheResponse());
      return Items;
    });
    const app = await start([XCacheModule.forRoot({ cache: memory })], controllers);
    app.enableVersioning({ type: VersioningType.HEADER, header: "x-version" });
    const get = await serve(app);
    for (const version of ["1", "2", "1"])
      expect(await get("/items", { headers: { "x-version": version } })).toBe(`version ${version}`);
  });

  test("is kept for its ttl", async () => {
    const { cache, clock } = memoryCache();
    const { get, calls } = await ask(() => "text", { ttl: 2 }, cache);
    await get("/items/1");
    await clock.advance(1_999);
    await get("/items/1");
    expect(calls).toHaveLength(1);
    await clock.advance(1);
    await get("/items/1");
    expect(calls).toHaveLength(2);
  });

  test.each([
    ["authorization", "Bearer x"],
    ["cookie", "session=1"],
  ])("is not one to a request with %s, unless a key tells users apart", async (name, value) => {
    const init = { headers: { [name]: value } };
    const plain = await ask(() => "text");
    for (let time = 0; time < 2; time++) await plain.get("/items/1", init);
    expect(plain.calls).toHaveLength(2);
    const keyed = await ask(() => "text", { key: (request) => String(request.headers[name]) });
    for (let time = 0; time < 2; time++) await keyed.get("/items/1", init);
    await keyed.get("/items/1", { headers: { [name]: "another" } });
    expect(keyed.calls).toHaveLength(2);
    const refused = await ask(() => "text", { key: () => undefined });
    for (let time = 0; time < 2; time++) await refused.get("/items/1");
    expect(refused.calls).toHaveLength(2);
  });

  test("is never an error, and an error reaches every waiting request once", async () => {
    const { get, calls } = await ask(() => {
      throw new HttpException("broken", 418);
    });
    expect(JSON.parse(await get("/items/1"))).toMatchObject({ statusCode: 418, message: "broken" });
    await get("/items/1");
    expect(calls).toHaveLength(2);
  });

  test("is that of an Observable's last value", async () => {
    const { get, calls } = await ask(() => of("first", "last"));
    expect([await get("/items/1"), await get("/items/1")]).toEqual(["last", "last"]);
    expect(calls).toHaveLength(1);
  });

  test("is never a stream: every concurrent request gets a complete one", async () => {
    const { get, calls } = await ask(() => new StreamableFile(Buffer.from("bytes")));
    expect(await Promise.all([get("/items/1"), get("/items/1"), get("/items/1")])).toEqual([
      "bytes",
      "bytes",
      "bytes",
    ]);
    expect(calls).toHaveLength(3);
  });

  test("is never a class instance, which could expose hidden fields; one warning says so", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    onTestFinished(() => void warning.mockRestore());
    class User {
      readonly name = "n";
      readonly #password = "secret";
      toJSON() {
        return { name: this.name, length: this.#password.length };
      }
    }
    const { get, calls } = await ask(() => [new User()]);
    for (let time = 0; time < 2; time++) expect(await get("/items/1")).toBe('[{"name":"n","length":6}]');
    expect(calls).toHaveLength(2);
    expect(warning.mock.calls).toEqual([[expect.stringContaining("Items.find"), "XCacheWarning"]]);
  });

  test("is computed again if the store fails", async () => {
    const { cache, fail, calm } = failingCache();
    const { get, calls } = await ask(() => "text", {}, cache);
    fail();
    expect([await get("/items/1"), await get("/items/1")]).toEqual(["text", "text"]);
    expect(calls).toHaveLength(2);
    calm();
  });

  test("of a controller excludes other methods, event streams and opted-out handlers", async () => {
    const calls: string[] = [];
    class Mixed {
      cached() {
        return calls.push("cached");
      }
      twice() {
        return calls.push("twice");
      }
      live() {
        return calls.push("live");
      }
      change() {
        return calls.push("change");
      }
      events() {
        calls.push("events");
        return of({ data: "one" }, { data: "two" });
      }
    }
    Controller("mixed")(Mixed);
    CacheResponse({ ttl: 60 })(Mixed);
    decorate(Mixed, "cached", Get("cached"));
    decorate(Mixed, "twice", Get("twice"), CacheResponse({ ttl: 5 }));
    decorate(Mixed, "live", Get("live"), CacheResponse(false));
    decorate(Mixed, "change", Post("change"));
    decorate(Mixed, "events", Sse("events"));
    const app = await start([XCacheModule.forRoot({ cache: memory })], [Mixed]);
    const ask = await serve(app);
    for (let time = 0; time < 2; time++) {
      for (const path of ["cached", "twice", "live"]) await ask(`/mixed/${path}`);
      expect(await ask("/mixed/events")).toMatch(/data: one\n.*data: two\n/s);
      await ask("/mixed/change", { method: "POST" });
    }
    const count = (name: string) => calls.filter((call) => call === name).length;
    expect(["cached", "twice", "live", "change", "events"].map(count)).toEqual([1, 1, 2, 2, 2]);
    const ttls = await Promise.all(
      ["cached", "twice"].map(async (name) => {
        for await (const key of app.get(XCache).keys(`nest:Mixed.${name}:*`)) return app.get(XCache).ttl(key);
        return undefined;
      }),
    );
    expect(ttls.map((ttl) => Math.ceil(ttl!))).toEqual([60, 5]);
  });
});

describe("a cached method", () => {
  class Users {
    readonly cache: XCache;
    calls = 0;
    constructor(cache: XCache) {
      this.cache = cache;
    }
    async find(id: number): Promise<{ id: number; call: number }> {
      return { id, call: ++this.calls };
    }
    async usual(): Promise<number> {
      return ++this.calls;
    }
  }
  decorate(
    Users as Type,
    "find",
    CacheMethod<Users, [number], unknown>({
      cache: (self) => self.cache,
      ttl: 60,
      tags: (id) => [`user:${id}`],
    }) as MethodDecorator,
  );
  decorate(Users as Type, "usual", CacheMethod<Users, [], unknown>({ ttl: 60 }) as MethodDecorator);

  test("is keyed by arguments, class and name in the cache of its object", async () => {
    const { cache } = memoryCache();
    const users = new Users(cache);
    expect([await users.find(1), await users.find(1), (await users.find(2)).call]).toEqual([
      { id: 1, call: 1 },
      { id: 1, call: 1 },
      2,
    ]);
    const [key] = [await cache.keys()[Symbol.asyncIterator]().next()];
    expect(key?.value).toContain("Users.find");
    await cache.invalidateTags("user:1");
    expect((await users.find(1)).call).toBe(3);
    expect((await new Users(memoryCache().cache).find(1)).call).toBe(1);
  });

  test("keeps its route, name and response caching in Nest", async () => {
    class Pages {
      async one() {
        return "one";
      }
      async two() {
        return "two";
      }
    }
    Controller("pages")(Pages);
    const method = CacheMethod({ cache: () => memoryCache().cache }) as MethodDecorator;
    // Both give the same key; the name of the handler distinguishes them.
    for (const name of ["one", "two"])
      decorate(Pages, name, method, Get(name), CacheResponse({ key: () => "same" }));
    const get = await serve(await start([XCacheModule.forRoot({ cache: memory })], [Pages]));
    expect([await get("/pages/one"), await get("/pages/two")]).toEqual(["one", "two"]);
  });

  test("uses the default cache if none is given", async () => {
    const { cache } = memoryCache();
    const users = new Users(cache);
    setDefaultCache(cache);
    onTestFinished(() => setDefaultCache(undefined));
    expect([await users.usual(), await users.usual()]).toEqual([1, 1]);
  });
});
