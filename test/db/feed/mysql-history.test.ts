// A random history of outside writers, readers in two processes' stead, and faults, on MariaDB; every answer is held against the
// stated guarantee. XCACHE_FEED_SEED repeats a history, XCACHE_FEED_COMMITS makes it longer.
import { setImmediate as turn } from "node:timers/promises";
import mysql, { type Connection, type Pool } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startMysqlFeed } from "../../../src/db/feed/start.ts";
import { type Feed, rowsTag, rowTag } from "../../../src/db/feed.ts";
import { tableTag } from "../../../src/db/tracking/table-tags.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { type MariadbServer, startMariadb } from "../../support/mariadb.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

const SEED = Number(process.env.XCACHE_FEED_SEED ?? Math.floor(Math.random() * 2 ** 31));
const COMMITS = Number(process.env.XCACHE_FEED_COMMITS ?? 30);
const IDS = [1, 2, 3, 4, 5];
const WRITERS = 8;
const SILENT_FOR = 1;

let server: MariadbServer;
let redis: RedisServer;
let closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  [server, redis] = await Promise.all([
    startMariadb(["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]),
    startRedis(),
  ]);
});
afterAll(() => Promise.all([server?.stop(), redis?.stop()]));
afterEach(async () => {
  const ends = closing.reverse();
  closing = [];
  for (const end of ends) await end().catch(() => {});
});

/** What was committed to each row, and from when on a read has to see it. */
class History {
  readonly #commits = new Map<number, { readonly value: number; readonly due: number }[]>();
  readonly violations: string[] = [];

  committed(id: number, value: number): void {
    const due = performance.now() + SILENT_FOR * 1_000;
    this.#commits.set(id, [...(this.#commits.get(id) ?? []), { value, due }]);
  }

  /** What a read that begins now may not be older than. */
  least(id: number): number {
    const due = (this.#commits.get(id) ?? []).filter((commit) => commit.due <= performance.now());
    return Math.max(0, ...due.map(({ value }) => value));
  }
}

interface Member {
  readonly cache: XCache;
  readonly feed: Feed;
  readonly pool: Pool;
  hits: number;
}

async function counterOf({ pool }: Member, id: number): Promise<number> {
  const [rows] = await pool.query("SELECT n FROM counters WHERE id = ?", [id]);
  return (rows as { readonly n: number }[])[0]?.n ?? Number.NaN;
}

/** As an application reads: past the cache while the feed is silent. */
async function read(member: Member, id: number, rows: boolean): Promise<number> {
  if (!member.feed.isAlive()) return counterOf(member, id);
  const tags = rows ? [rowTag("counters", id), rowsTag("counters")] : [tableTag("counters")];
  let isHit = true;
  const value = await member.cache.getOrSet(
    `row ${id}`,
    async () => {
      isHit = false;
      return counterOf(member, id);
    },
    { ttl: 600, tags },
  );
  if (isHit) member.hits++;
  // It may have fallen silent meanwhile.
  return member.feed.isAlive() ? value : counterOf(member, id);
}

test.each([false, true])(
  `every answer keeps the guarantee (seed ${SEED}, rows: %s)`,
  { timeout: 120_000 },
  async (rows) => {
    const random = seededRandom(SEED + Number(rows));
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const name = await server.createDatabase();
    const connected = (): Promise<Connection> => mysql.createConnection(server.at(name));
    const outside = await connected();
    closing.push(() => outside.end());
    await outside.query("CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)");
    await outside.query("INSERT INTO counters VALUES ?", [IDS.map((id) => [id, 0])]);
    const [database, store] = await Promise.all([Relay.start(server.port), Relay.start(redis.port)]);
    closing.push(() => Promise.all([database.stop(), store.stop()]));
    const start = async (port: number, kvUrl: string): Promise<Member> => {
      const cache = new XCache({ kvUrl, keyPrefix: name });
      const options = { cache, tables: "counters", rows, silentFor: SILENT_FOR };
      const feed = startMysqlFeed(
        { ...options, connection: { ...server.at(name), port } },
        { timeoutMs: 2_000 },
      );
      const pool = mysql.createPool({ ...server.at(name), connectionLimit: 3 });
      closing.push(async () => {
        await feed.close();
        await Promise.all([pool.end(), cache.disconnect()]);
      });
      await feed.ready();
      return { cache, feed, pool, hits: 0 };
    };
    const members = [await start(database.port, store.url), await start(server.port, redis.url)];
    const history = new History();
    let isOver = false;

    const write = async (): Promise<void> => {
      const client = await connected();
      for (let commit = 0; commit < COMMITS; commit++) {
        const id = pick(IDS);
        await client.beginTransaction();
        await client.query("UPDATE counters SET n = n + 1 WHERE id = ?", [id]);
        const [found] = await client.query("SELECT n FROM counters WHERE id = ?", [id]);
        await client.commit();
        history.committed(id, (found as { readonly n: number }[])[0]?.n ?? 0);
      }
      await client.end();
    };
    const reading = async (who: number): Promise<void> => {
      for (const member = members[who] as Member; !isOver; await turn()) {
        const id = pick(IDS);
        const least = history.least(id);
        const value = await read(member, id, rows);
        if (value < least)
          history.violations.push(`reader ${who} read ${value} of row ${id}, ${least} was due`);
      }
    };
    const faults: readonly (() => Promise<unknown>)[] = [
      async () => database.reset(),
      async () => store.reset(),
      async () => {
        const [processes] = await outside.query("SHOW PROCESSLIST");
        for (const { Id, Command } of processes as { Id: number; Command: string }[])
          if (Command === "Binlog Dump") await outside.query(`KILL ${Id}`);
      },
      () => outside.query("FLUSH BINARY LOGS"),
      async () => {
        database.silence();
        await outside.query("SELECT SLEEP(0.2)");
        database.restore();
      },
    ];
    const disturb = async (): Promise<void> => {
      while (!isOver) {
        await pick(faults)().catch(() => {});
        await outside.query("SELECT SLEEP(0.1)");
      }
    };

    const readers = [0, 1, 1].map(reading);
    const disturbing = disturb();
    await Promise.all(Array.from({ length: WRITERS }, write));
    isOver = true;
    await Promise.all([...readers, disturbing]);
    expect(history.violations.slice(0, 5), `${history.violations.length} violations`).toEqual([]);
    // And it recovers: what is read is cached again.
    const before = members[1]!.hits;
    await until(
      async () => {
        await read(members[1]!, 1, rows);
        return members[1]!.hits > before;
      },
      { what: "reads are cached again" },
    );
  },
);
