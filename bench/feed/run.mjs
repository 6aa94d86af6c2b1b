// How long after a commit of another program its row is gone from the cache, and what the feed costs writers.
// Needs PostgreSQL with wal_level = logical (DATABASE_URL, a database of its own) and Redis (XCACHE_KV_URL):
//   node bench/feed/run.mjs [--commits 5000] [--seconds 5]
import { fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import pg from "pg";
import { postgresFeed, postgresNotifyFeed, rowsTag, rowTag } from "../../dist/db/feed.js";
import { XCache } from "../../dist/index.js";

const connection = process.env.DATABASE_URL ?? "";
const kvUrl = process.env.XCACHE_KV_URL ?? "redis://localhost:6379/0";
const TABLES = ["bench_users", "bench_pets"];
const WRITERS = 8;

/** Another process, which leads: what is measured is not slowed down by who measures. */
async function lead(/** @type {string} */ kind) {
  const cache = new XCache({ kvUrl, keyPrefix: "bench-feed" });
  const options = { connection, cache, tables: TABLES, rows: true };
  const feed =
    kind === "notify"
      ? postgresNotifyFeed({ ...options, channel: "bench" })
      : postgresFeed({ ...options, publication: "bench" });
  await feed.ready();
  process.send?.("ready");
  await once(process, "message");
  await feed.close();
  await cache.disconnect();
  process.disconnect();
}

async function withLeader(/** @type {string} */ kind, /** @type {() => Promise<T>} */ work) {
  const leader = fork(import.meta.filename, ["--lead", kind]);
  await once(leader, "message");
  try {
    return await work();
  } finally {
    leader.send("end");
    await once(leader, "exit");
  }
}

/** @param {number[]} values @param {number} share */
const percentile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN;

const ms = (/** @type {number} */ value) => `${value.toFixed(1)} ms`;

/** What another program does to user `id`, by kind. @type {Record<string, (client: pg.Client, id: number) => Promise<unknown>>} */
const WRITES = {
  update: (client, id) => client.query("UPDATE bench_users SET n = n + 1 WHERE id = $1", [id]),
  "function that writes": (client, id) => client.query("SELECT bench_bump($1)", [id]),
  trigger: (client, id) => client.query("UPDATE bench_pets SET n = n + 1 WHERE owner = $1", [id]),
  "transaction of 5 statements": async (client, id) => {
    await client.query("BEGIN");
    for (let at = 0; at < 4; at++)
      await client.query("UPDATE bench_users SET n = n + 1 WHERE id = $1", [id + 100 + at]);
    await client.query("UPDATE bench_users SET n = n + 1 WHERE id = $1", [id]);
    await client.query("COMMIT");
  },
  "delete and insert": (client, id) =>
    client.query(
      `WITH gone AS (DELETE FROM bench_users WHERE id = ${id}) SELECT 1; INSERT INTO bench_users VALUES (${id}, 0)`,
    ),
};

/** Milliseconds from a commit's return to the first miss. undefined: not within 10 s. */
async function staleness(
  /** @type {XCache} */ cache,
  /** @type {pg.Client} */ client,
  /** @type {string} */ kind,
  /** @type {number} */ id,
) {
  const key = `user:${id}`;
  await cache.set(key, id, { ttl: 600, tags: [rowTag("bench_users", id), rowsTag("bench_users")] });
  await WRITES[kind]?.(client, id);
  const committed = performance.now();
  while ((await cache.get(key)) !== undefined) if (performance.now() - committed > 10_000) return undefined;
  return performance.now() - committed;
}

/** Transactions per second of 8 writers, each as fast as it can. */
async function throughput(/** @type {number} */ seconds) {
  const clients = await Promise.all(Array.from({ length: WRITERS }, connected));
  const end = performance.now() + seconds * 1_000;
  let commits = 0;
  await Promise.all(
    clients.map(async (client, at) => {
      for (; performance.now() < end; commits++) {
        await client.query("UPDATE bench_users SET n = n + 1 WHERE id = $1", [at * 100 + (commits % 100)]);
      }
    }),
  );
  await Promise.all(clients.map((client) => client.end()));
  return Math.round(commits / seconds);
}

async function connected() {
  const client = new pg.Client(connection);
  await client.connect();
  return client;
}

async function measure(/** @type {number} */ commits, /** @type {number} */ seconds) {
  const client = await connected();
  await client.query(`
    DROP PUBLICATION IF EXISTS bench; DROP TABLE IF EXISTS bench_pets, bench_users; DROP FUNCTION IF EXISTS bench_bump, bench_owner, bench_notify;
    CREATE TABLE bench_users (id int PRIMARY KEY, n int NOT NULL);
    CREATE TABLE bench_pets (id int PRIMARY KEY, owner int NOT NULL, n int NOT NULL);
    INSERT INTO bench_users SELECT id, 0 FROM generate_series(0, 1999) AS id;
    INSERT INTO bench_pets SELECT id, id, 0 FROM generate_series(0, 999) AS id;
    CREATE FUNCTION bench_bump(int) RETURNS void LANGUAGE sql AS 'UPDATE bench_users SET n = n + 1 WHERE id = $1';
    CREATE FUNCTION bench_owner() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE bench_users SET n = n + 1 WHERE id = NEW.owner; RETURN NULL; END';
    CREATE TRIGGER bench_owner AFTER UPDATE ON bench_pets FOR EACH ROW EXECUTE FUNCTION bench_owner();
    CREATE FUNCTION bench_notify() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('bench', TG_RELID::text); RETURN NULL; END $$;
    CREATE PUBLICATION bench FOR TABLE bench_users, bench_pets`);
  const alone = await throughput(seconds);
  const cache = new XCache({ kvUrl, keyPrefix: "bench-feed" });
  const fed = await withLeader("logical", async () => {
    const kinds = Object.keys(WRITES);
    for (const kind of kinds) {
      const times = [];
      for (let at = 0; at < commits / kinds.length; at++)
        times.push(await staleness(cache, client, kind, at % 100));
      const seen = times.filter((time) => time !== undefined);
      const lost = times.length - seen.length;
      console.log(
        `${kind}: ${times.length} commits, p50 ${ms(percentile(seen, 0.5))}, p99 ${ms(percentile(seen, 0.99))}, longest ${ms(Math.max(...seen))}, ${lost} lost`,
      );
    }
    return throughput(seconds);
  });
  for (const table of TABLES) {
    await client.query(
      `CREATE TRIGGER bench AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION bench_notify()`,
    );
  }
  const notified = await withLeader("notify", () => throughput(seconds));
  console.log(
    `writers: ${alone} transactions/s without a feed, ${fed} with postgresFeed, ${notified} with postgresNotifyFeed`,
  );
  await cache.disconnect();
  await client.end();
}

const { values } = parseArgs({
  options: {
    commits: { type: "string", default: "5000" },
    seconds: { type: "string", default: "5" },
    lead: { type: "string" },
  },
});
if (values.lead !== undefined) await lead(values.lead);
else await measure(Number(values.commits), Number(values.seconds));
