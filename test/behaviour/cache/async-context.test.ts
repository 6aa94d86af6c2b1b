// Everything that a caller causes runs in its own async context: loads, refreshes, handlers and listeners, on every store.
import "../../../src/backends/kv/client.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { randomInt } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import Database from "libsql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cachedDependency } from "../../../src/cached-dependency.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { SessionAdapter } from "../../../src/core/db-session.ts";
import type { CacheEvent } from "../../../src/core/events.ts";
import { cached } from "../../../src/functions/cached.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";
import { ADAPTERS, subject } from "../web/subject.ts";

/** `XCACHE_TEST_SEED=<seed>` repeats a run. */
const seed = Number(process.env.XCACHE_TEST_SEED ?? randomInt(2 ** 31));
const USERS = 60;
const EVENTS: readonly CacheEvent[] = ["hit", "miss", "set", "delete", "invalidate"];

let redis: RedisServer;
let memcached: MemcachedServer;
let cluster: RedisCluster;
const folder = freshFolders();
beforeAll(async () => {
  [redis, memcached, cluster] = await Promise.all([
    startRedis(),
    startMemcached(),
    startCluster({ replicas: 0 }),
  ]);
});
afterAll(() => Promise.all([redis?.stop(), memcached?.stop(), cluster?.stop()]));

const STORES: readonly (readonly [string, () => CacheConfig])[] = [
  ["memory", () => ({ kvUrl: "memory://" })],
  ["redis", () => ({ kvUrl: redis.url })],
  ["redis with a near tier", () => ({ kvUrl: redis.url, nearCache: true })],
  ["redis with three connections", () => ({ kvUrl: redis.url, poolSize: 3 })],
  ["a cluster", () => ({ kvUrl: cluster.url })],
  ["memcached", () => ({ kvUrl: memcached.url })],
  ["disk", () => ({ kvUrl: `file://${folder()}` })],
  ["disk with a near tier", () => ({ kvUrl: `file://${folder()}`, nearCache: true })],
];

const user = new AsyncLocalStorage<{ readonly name: string }>();
function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
const owner = (key: string): string => /user-\d+/.exec(key)?.[0] ?? "nobody";

describe.each(STORES)("on %s", (name, config) => {
  test("each load, refresh and listener runs in the context of the caller that caused it", async () => {
    const random = seededRandom(seed);
    const strangers: string[] = [];
    const seen = new Set<string>();
    const check = (what: string, of: string): void => {
      seen.add(what);
      const inside = user.getStore()?.name;
      if (inside !== owner(of)) strangers.push(`${what} of ${owner(of)} in the context of ${inside}`);
    };
    await using cache = new XCache({ ...config(), keyPrefix: `context ${name}`, operationTimeout: 5 });
    await using quiet = cache.namespace("quiet");
    for (const event of EVENTS)
      cache.on(event, (details) => {
        const { key, tags, pattern } = details as { key?: string; tags?: string[]; pattern?: string };
        check(event, key ?? tags?.join() ?? pattern ?? "");
      });
    const find = cached(
      async (id: string) => {
        check("cached load", id);
        return id;
      },
      { cache: quiet, name: `find ${name}`, ttl: 60 },
    );
    const steps: readonly ((id: string) => Promise<unknown>)[] = [
      (id) => cache.getOrSet(id, async () => check("load", id), { tags: [id] }),
      (id) => quiet.getOrSet(id, async () => check("quiet load", id)),
      (id) => quiet.getOrSet(id, async () => check("forced load", id), { forceLoad: true }),
      (id) => quiet.getOrSet(id, () => Promise.reject(check("failing load", id))).catch(() => {}),
      async (id) => {
        await quiet.getOrSet(`${id} stale`, () => 1, { ttl: 0.001, staleWhileRevalidate: 60 });
        const refreshed = deferred();
        const refresh = async (): Promise<number> => {
          check("refresh", id);
          refreshed.resolve();
          return 2;
        };
        await until(() => quiet.exists(`${id} stale`).then((is) => !is), { what: "it has expired" });
        const value = await quiet.getOrSet(`${id} stale`, refresh, { ttl: 60, staleWhileRevalidate: 60 });
        if (value === 1) await refreshed.promise;
      },
      async (id) => {
        const joined = quiet.getOrSet(`${id} shared`, async () => check("first load", id));
        await quiet.delete(`${id} shared`);
        await Promise.all([joined, quiet.getOrSet(`${id} shared`, async () => check("second load", id))]);
      },
      (id) => find(id),
      (id) => find.refresh(id),
      (id) => cache.get(id),
      (id) => cache.getMany([id, `${id} other`]),
      (id) => cache.set(id, 1, { tags: [id] }),
      (id) => cache.setMany([[`${id} many`, 1]]),
      (id) => cache.delete(id),
      (id) => cache.invalidateTags([id]),
    ];
    const request = (at: number): Promise<void> =>
      user.run({ name: `user-${at}` }, async () => {
        // Each once, in random order, and some again.
        const order = steps.map((step) => ({ step, rank: random() })).sort((a, b) => a.rank - b.rank);
        for (const { step } of order) await step(`user-${at} ${Math.floor(random() * 3)}`);
      });
    // The first of them opens the connection.
    await Promise.all(Array.from({ length: USERS }, (_, at) => request(at)));
    expect(strangers.slice(0, 5), `${strangers.length} of them; seed ${seed}`).toEqual([]);
    expect([...seen].sort()).toEqual(
      [
        ...EVENTS,
        ...["load", "quiet load", "forced load", "failing load", "refresh", "first load", "cached load"],
        "second load",
      ].sort(),
    );
  });
});

describe.each(STORES)("a database session cached on %s", (name, config) => {
  test("asks the database in the context of the caller that reads", async () => {
    await using cache = new XCache({ ...config(), keyPrefix: `sessions ${name}`, operationTimeout: 5 });
    const strangers: string[] = [];
    let asked = 0;
    const file = new Database(":memory:");
    file.exec("CREATE TABLE users (name TEXT)");
    for (let at = 0; at < USERS; at++) file.prepare("INSERT INTO users VALUES (?)").run(`user-${at}`);
    const database = {
      async all(text: string, values: readonly unknown[]): Promise<readonly object[]> {
        asked++;
        const inside = user.getStore()?.name;
        if (inside !== values[0]) strangers.push(`${text} for ${values[0]} in the context of ${inside}`);
        return file.prepare(text).all(...values) as object[];
      },
    };
    const adapter: SessionAdapter<typeof database> = {
      name: "a session of SQLite",
      recognises: (session): session is typeof database => session === database,
      wrap(session, tracker) {
        const connection = tracker.connection(session, () => ({
          dialect: "sqlite",
          database: "users.db",
          query: async (text, values) => file.prepare(text).all(...values) as never,
          isRefusal: () => true,
        }));
        return {
          all: (text, values) =>
            connection.run({
              text,
              values,
              execute: () => session.all(text, values),
              cacheable: {
                fetch: () => session.all(text, values),
                restore: (data) => data as readonly object[],
              },
            }),
        };
      },
    };
    const session = cachedDependency(() => database, { cache, tableName: "users", adapter })();
    const read = (at: number): Promise<readonly object[]> =>
      user.run({ name: `user-${at}` }, () =>
        session.all("SELECT name FROM users WHERE name = ?", [`user-${at}`]),
      );
    const all = Array.from({ length: USERS }, (_, at) => at);
    const rows = await Promise.all(all.map(read));
    expect(strangers).toEqual([]);
    expect(rows).toEqual(all.map((at) => [{ name: `user-${at}` }]));
    expect(asked).toBe(USERS);
    expect(await Promise.all(all.map(read))).toEqual(rows);
    expect(asked).toBe(USERS);
  });
});

describe.each(ADAPTERS)("the HTTP cache on %s", (adapter) => {
  test("runs each handler and listener in the context of its request", async () => {
    await using cache = new XCache({ kvUrl: redis.url, keyPrefix: `context ${adapter}` });
    const strangers: string[] = [];
    const check = (what: string, of: string): void => {
      const inside = user.getStore()?.name;
      if (inside !== owner(of)) strangers.push(`${what} of ${owner(of)} in the context of ${inside}`);
    };
    const { ask } = await subject(
      adapter,
      ({ url }) => {
        check("handler", url);
        return { body: `page of ${user.getStore()?.name}`, headers: { "cache-control": "max-age=60" } };
      },
      {
        cache,
        onHit: ({ key }) => check("onHit", key),
        onMiss: ({ key }) => check("onMiss", key),
        onStore: ({ key }) => check("onStore", key),
      },
      ({ url = "" }, listen) => user.run({ name: owner(url) }, listen),
    );
    for (let round = 0; round < 2; round++) {
      const pages = Array.from({ length: USERS }, (_, at) => ask(`/user-${at}`));
      const bodies = (await Promise.all(pages)).map(({ body }) => body);
      expect(bodies).toEqual(bodies.map((_, at) => `page of user-${at}`));
    }
    expect(strangers.slice(0, 5), `${strangers.length} of them`).toEqual([]);
  });
});

describe.each(STORES)("on %s", (name, config) => {
  test("no connection or timer retains the context of the call that opened it", async () => {
    await using cache = new XCache({ ...config(), keyPrefix: `retained ${name}`, operationTimeout: 2 });
    // Not in this function: its frame would retain the object.
    const open = async (): Promise<WeakRef<object>> => {
      const context = { name: "first" };
      await user.run(context, async () => {
        await cache.getOrSet("key", async () => "value", { ttl: 600, tags: ["tag"] });
        await cache.get("key");
        await cache.getOrSet("key", () => "unused");
        await cache.set("other", 1);
        await cache.clear();
      });
      return new WeakRef(context);
    };
    const first = await open();
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    await until(
      async () => {
        collect();
        await cache.get("key");
        return first.deref() === undefined;
      },
      // To collect all garbage takes longer than anything else here.
      { what: "the context of the first call is collected", timeoutMs: 8_000, everyMs: 250 },
    );
  });
});
