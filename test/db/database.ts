// A database of its own for each test, on one real server for the tests of a file, and caches that watch its sessions.
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import type { CacheForSessions, SessionScope, TableSettings } from "../../src/core/db-session.ts";
import { drizzleSessions } from "../../src/db/drizzle.ts";
import { knexSessions } from "../../src/db/knex.ts";
import { kyselySessions } from "../../src/db/kysely.ts";
import { mysql2Sessions } from "../../src/db/mysql2.ts";
import { pgSessions } from "../../src/db/pg.ts";
import { postgresSessions } from "../../src/db/postgres.ts";
import { prismaSessions } from "../../src/db/prisma.ts";
import { trackSessions } from "../../src/db/tracking/session.ts";
import { typeormSessions } from "../../src/db/typeorm.ts";
import { type CachedDependency, dependencyWrapper } from "../../src/functions/dependency.ts";
import { XCache } from "../../src/xcache.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";

const ADAPTERS = [
  ...[pgSessions, mysql2Sessions, knexSessions, kyselySessions],
  ...[drizzleSessions, typeormSessions, prismaSessions, postgresSessions],
];

/** As the package puts it together. */
export const cachedDependency: CachedDependency = cachedDependencyWith(systemClock);

export function cachedDependencyWith(clock: Clock): CachedDependency {
  const track = (scope: SessionScope) => trackSessions(scope, clock);
  return dependencyWrapper({ adapters: ADAPTERS, trackSessions: track });
}

/** A cache that counts what sessions ask of it. */
export interface CountingCache extends CacheForSessions {
  readonly cache: XCache;
  /** The tags of each invalidation. */
  readonly invalidated: (readonly string[])[];
  readonly tables: Record<string, TableSettings>;
  /** What is stored now. */
  keys(): Promise<string[]>;
}

export function countingCache(cache: XCache): CountingCache {
  const invalidated: (readonly string[])[] = [];
  return {
    cache,
    invalidated,
    tables: {},
    async keys() {
      const keys: string[] = [];
      for await (const key of cache.keys()) keys.push(key);
      return keys;
    },
    get: (key) => cache.get(key),
    getOrSet: (key, load, options) => cache.getOrSet(key, load, options),
    async invalidateTags(tags) {
      invalidated.push(tags);
      await cache.invalidateTags(tags);
    },
  };
}

export interface TestDatabase {
  readonly server: PostgresServer;
  readonly name: string;
  readonly cache: CountingCache;
  /** Not watched, to look behind the cache's back; one connection. */
  readonly raw: pg.Client;
  /** Closed at the end of the test. */
  pool(config?: pg.PoolConfig, user?: string): pg.Pool;
  client(config?: pg.ClientConfig, user?: string): Promise<pg.Client>;
  memoryCache(): CountingCache;
  /** To be done at the end of the test. */
  atEnd(close: () => Promise<unknown>): void;
  /** Changes a row where nobody sees it. */
  changeBehind(name: string): Promise<void>;
}

/** To be called once in a test file. Each test finds the tables `users (id, name)` with one row and `orders`. */
export function testDatabase(settings: Readonly<Record<string, string>> = {}): TestDatabase {
  let server: PostgresServer;
  let name: string;
  let raw: pg.Client;
  let cache: CountingCache;
  let closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    server = await startPostgres(settings);
  });
  afterAll(() => server?.stop());
  beforeEach(async () => {
    name = await server.createDatabase();
    raw = new pg.Client(server.at(name));
    raw.on("error", () => {});
    await raw.connect();
    await raw.query("CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL)");
    await raw.query("CREATE TABLE orders (id int PRIMARY KEY, user_id int)");
    await raw.query("INSERT INTO users VALUES (1, 'Ada')");
    cache = database.memoryCache();
  });
  afterEach(async () => {
    const ends = closing;
    closing = [];
    await Promise.allSettled(ends.map((end) => end()));
    await raw.end().catch(() => {});
  });
  const database: TestDatabase = {
    get server() {
      return server;
    },
    get name() {
      return name;
    },
    get raw() {
      return raw;
    },
    get cache() {
      return cache;
    },
    pool(config, user) {
      const pool = new pg.Pool({ ...server.at(name, user), ...config });
      pool.on("error", () => {});
      closing.push(() => pool.end());
      return pool;
    },
    async client(config, user) {
      const client = new pg.Client({ ...server.at(name, user), ...config });
      client.on("error", () => {});
      closing.push(() => client.end());
      await client.connect();
      return client;
    },
    memoryCache() {
      const made = new XCache({ kvUrl: "memory://" });
      closing.push(() => made.disconnect());
      return countingCache(made);
    },
    atEnd(close) {
      closing.push(close);
    },
    async changeBehind(changed) {
      await raw.query("UPDATE users SET name = $1 WHERE id = 1", [changed]);
    },
  };
  return database;
}
