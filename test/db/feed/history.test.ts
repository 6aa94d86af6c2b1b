// A random history of outside writers, a session that writes, readers in two processes' stead, and faults; every answer is
// held against the stated guarantee. XCACHE_FEED_SEED repeats a history, XCACHE_FEED_COMMITS makes it longer.
import { setImmediate as turn } from "node:timers/promises";
import type pg from "pg";
import { expect, test } from "vitest";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";
import { feedStage, type Member } from "./feed-stage.ts";

const stage = feedStage({ max_connections: "60" });

const SEED = Number(process.env.XCACHE_FEED_SEED ?? Math.floor(Math.random() * 2 ** 31));
const COMMITS = Number(process.env.XCACHE_FEED_COMMITS ?? 30);
const ROWS = 5;
const WRITERS = 8;
const SILENT_FOR = 1;

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What was committed to each row, and when that was known. */
class History {
  readonly #commits = new Map<number, { readonly value: number; readonly at: number }[]>();
  readonly violations: string[] = [];

  /** `isOwn`: through a session, whose commits invalidate before they return. */
  committed(id: number, value: number, isOwn: boolean): void {
    const at = performance.now() + (isOwn ? 0 : SILENT_FOR * 1_000);
    this.#commits.set(id, [...(this.#commits.get(id) ?? []), { value, at }]);
  }

  /** What a read that begins now may not be older than. */
  least(id: number): number {
    const now = performance.now();
    const due = (this.#commits.get(id) ?? []).filter(({ at }) => at <= now);
    return Math.max(0, ...due.map(({ value }) => value));
  }

  read(who: string, id: number, least: number, value: number): void {
    if (value < least) this.violations.push(`${who} read ${value} of row ${id}, at least ${least} was due`);
  }
}

const readValue = async (db: pg.Pool, id: number): Promise<number> =>
  (await db.query<{ n: number }>("SELECT n FROM counters WHERE id = $1", [id])).rows[0]!.n;

/** Each ends by itself; `undone` puts things right again. */
function faults(relays: {
  readonly database: Relay;
  readonly store: Relay;
}): readonly (() => Promise<unknown>)[] {
  const ask = async (text: string) => (await stage.outside.query<{ pid: number }>(text)).rows;
  const walsenders = () => ask("SELECT pid FROM pg_stat_replication");
  return [
    () => ask("SELECT pg_terminate_backend(pid) FROM pg_stat_replication"),
    () =>
      ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'xcache feed' AND backend_type = 'client backend'",
      ),
    async () => relays.database.reset(),
    async () => relays.store.reset(),
    async () => {
      const stopped = await walsenders();
      for (const { pid } of stopped) process.kill(pid, "SIGSTOP");
      await ask("SELECT pg_sleep(0.2)");
      for (const { pid } of stopped) process.kill(pid, "SIGCONT");
    },
    async () => {
      relays.database.silence();
      await ask("SELECT pg_sleep(0.2)");
      relays.database.restore();
    },
  ];
}

test.each([false, true])(
  `every answer keeps the guarantee (seed ${SEED}, rows: %s)`,
  { timeout: 120_000 },
  async (rows) => {
    const random = randomOf(SEED + (rows ? 1 : 0));
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const ids = Array.from({ length: ROWS }, (_, at) => at + 1);
    await stage.outside.query(`
    CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL);
    INSERT INTO counters SELECT id, 0 FROM generate_series(1, ${ROWS}) AS id;
    ALTER PUBLICATION xcache ADD TABLE counters`);
    const relays = {
      database: await Relay.start(stage.server.port),
      store: await Relay.start(stage.redis.port),
    };
    stage.atEnd(() => Promise.all([relays.database.stop(), relays.store.stop()]));
    const common = { tables: ["counters"], rows, silentFor: SILENT_FOR, internals: { timeoutMs: 2_000 } };
    const members: Member[] = [
      await stage.member({ ...common, kvUrl: relays.store.url, connection: { port: relays.database.port } }),
      await stage.member(common),
    ];
    const history = new History();
    let isOver = false;

    const write = async (client: pg.Client): Promise<void> => {
      for (let commit = 0; commit < COMMITS; commit++) {
        const id = pick(ids);
        const { rows: changed } = await client.query<{ n: number }>(
          "UPDATE counters SET n = n + 1 WHERE id = $1 RETURNING n",
          [id],
        );
        history.committed(id, changed[0]!.n, false);
      }
    };
    const writeOwn = async ({ db }: Member): Promise<void> => {
      for (let commit = 0; commit < COMMITS / 3; commit++) {
        const id = pick(ids);
        const { rows: changed } = await db.query<{ n: number }>(
          "UPDATE counters SET n = n + 1 WHERE id = $1 RETURNING n",
          [id],
        );
        history.committed(id, changed[0]!.n, true);
      }
    };
    const read = async (who: number): Promise<void> => {
      while (!isOver) {
        const id = pick(ids);
        const least = history.least(id);
        history.read(`reader ${who}`, id, least, await readValue(members[who]!.db, id));
        await turn();
      }
    };
    const disturb = async (): Promise<void> => {
      const possible = faults(relays);
      while (!isOver) {
        await pick(possible)().catch(() => {});
        await stage.outside.query("SELECT pg_sleep(0.1)").catch(() => {});
      }
    };

    const clients = await Promise.all(Array.from({ length: WRITERS }, () => stage.outsider()));
    const readers = [0, 1, 1].map(read);
    const disturbing = disturb();
    // The second process writes: the first one's store may be away, and then what it owes is delivered late.
    await Promise.all([...clients.map(write), writeOwn(members[1]!)]);
    isOver = true;
    await Promise.all([...readers, disturbing]);
    relays.database.restore();
    expect(history.violations).toEqual([]);
    expect((await members[1]!.cache.getStats()).totalHits).toBeGreaterThan(0);

    // In the end nothing old is left in any cache.
    for (const member of members) {
      await until(() => member.feed.isAlive(), { what: "the feed is alive" });
      for (const id of ids) {
        const { rows: now } = await stage.outside.query<{ n: number }>(
          "SELECT n FROM counters WHERE id = $1",
          [id],
        );
        await until(async () => (await readValue(member.db, id)) === now[0]!.n, { what: `row ${id} is new` });
      }
    }
  },
);
