// A database with a publication for each test, on one real server for the tests of a file, feeds of it, and caches on a real Redis.
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { startPostgresFeed } from "../../../src/db/feed/start.ts";
import type { Feed, PostgresFeedOptions } from "../../../src/db/feed.ts";
import { XCache } from "../../../src/xcache.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { cachedDependencyWith } from "../database.ts";

type Internals = Parameters<typeof startPostgresFeed>[1];

/** One process of an application: its cache, its feed and a session that uses both. */
export interface Member {
  readonly cache: XCache;
  readonly feed: Feed;
  readonly db: pg.Pool;
  /** The name of a user as the application gets it. */
  name(id?: number): Promise<string | undefined>;
  /** Whether that answer came from the cache: the database is not asked. */
  isCached(id?: number): Promise<boolean>;
}

export interface MemberOptions extends Partial<PostgresFeedOptions> {
  readonly internals?: Internals;
  /** Its own store instead of the shared one. */
  readonly kvUrl?: string;
  readonly keyPrefix?: string;
  /** Instead of this server, for the feed and the application. */
  readonly primary?: object;
}

export interface FeedStage {
  readonly server: PostgresServer;
  readonly redis: RedisServer;
  readonly name: string;
  /** An outside program: it knows nothing of the cache. */
  readonly outside: pg.Client;
  outsider(): Promise<pg.Client>;
  member(options?: MemberOptions): Promise<Member>;
  /** Like `member`, without waiting until its feed is alive. */
  start(options?: MemberOptions): Member;
  atEnd(close: () => Promise<unknown>): void;
}

export const LOGICAL = { wal_level: "logical", max_wal_senders: "20", max_replication_slots: "20" };

/** To be called once in a test file. `users` has rows 1 to 3, named `u1` to `u3`. */
export function feedStage(settings: Readonly<Record<string, string>> = {}): FeedStage {
  let server: PostgresServer;
  let redis: RedisServer;
  let name: string;
  let outside: pg.Client;
  let closing: (() => Promise<unknown>)[] = [];
  let prefixes = 0;
  beforeAll(async () => {
    [server, redis] = await Promise.all([startPostgres({ ...LOGICAL, ...settings }), startRedis()]);
  });
  afterAll(async () => {
    await Promise.all([server?.stop(), redis?.stop()]);
  });
  beforeEach(async () => {
    prefixes++;
    name = await server.createDatabase();
    outside = await stage.outsider();
    await outside.query("CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL)");
    await outside.query("INSERT INTO users SELECT id, 'u' || id FROM generate_series(1, 3) AS id");
    await outside.query("CREATE PUBLICATION xcache FOR TABLE users");
  });
  afterEach(async () => {
    const ends = closing.reverse();
    closing = [];
    await Promise.allSettled(ends.map((end) => end()));
  });
  const stage: FeedStage = {
    get server() {
      return server;
    },
    get redis() {
      return redis;
    },
    get name() {
      return name;
    },
    get outside() {
      return outside;
    },
    async outsider() {
      const client = new pg.Client(server.at(name));
      client.on("error", () => {});
      closing.push(() => client.end());
      await client.connect();
      return client;
    },
    async member(options) {
      const made = stage.start(options);
      await made.feed.ready();
      await made.name();
      return made;
    },
    start({ internals = {}, kvUrl = redis.url, keyPrefix = `t${prefixes}`, primary, ...options } = {}) {
      const cache = new XCache({ kvUrl, keyPrefix });
      const connection = (primary ?? {
        ...server.at(name),
        ...(options.connection as object),
      }) as object as Record<string, unknown>;
      const feed = startPostgresFeed(
        { silentFor: 30, tables: "users", cache, ...options, connection },
        internals,
      );
      const pool = new pg.Pool({ ...(primary ?? server.at(name)), max: 4 });
      pool.on("error", () => {});
      closing.push(async () => {
        await feed.close();
        await Promise.all([pool.end(), cache.disconnect()]);
      });
      const dependency = cachedDependencyWith(internals.clock ?? systemClock);
      const db = dependency(() => pool, { cache, tableName: "*", ttl: 3_600, feed })();
      let queries = 0;
      pool.on("acquire", () => queries++);
      const ask = async (id: number): Promise<string | undefined> =>
        (await db.query<{ name: string }>("SELECT name FROM users WHERE id = $1", [id])).rows[0]?.name;
      return {
        cache,
        feed,
        db,
        name: (id = 1) => ask(id),
        async isCached(id = 1) {
          const before = queries;
          await ask(id);
          return queries === before;
        },
      };
    },
    atEnd(close) {
      closing.push(close);
    },
  };
  return stage;
}

/** Waits until the member's answer is this one: it was invalidated. */
export function becomes(member: Member, name: string | undefined, id = 1): Promise<unknown> {
  return until(async () => (await member.name(id)) === name, { what: `user ${id} becomes ${name}` });
}
