// How long after a commit of another program its row is gone from the cache, and what a feed costs writers.
// Needs Redis (XCACHE_KV_URL) and a database of its own (DATABASE_URL): PostgreSQL with wal_level = logical, or MariaDB with a
// binary log in the row format.
//   node bench/feed/run.mjs [--commits 5000] [--seconds 5]
import { fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { rowsTag, rowTag } from "../../dist/db/feed.js";
import { XCache } from "../../dist/index.js";

/**
 * @typedef {{ query(text: string): Promise<unknown>, end(): Promise<unknown> }} Client
 * @typedef {import("../../dist/db/feed.js").Feed} Feed
 * @typedef {{ open(options: any): Feed, setUp?: string }} BenchFeed
 * @typedef {object} BenchDatabase
 * @property {(address: string) => Promise<Client>} connect
 * @property {string} setUp
 * @property {(id: number) => string} callWrite
 * @property {Record<string, BenchFeed>} feeds
 */

const address = process.env.DATABASE_URL ?? "";
const kvUrl = process.env.XCACHE_KV_URL ?? "redis://localhost:6379/0";
const WRITERS = 8;

/** @type {BenchDatabase} */
const database = /^(mysql|mariadb):/.test(address)
  ? (await import("./mysql.mjs")).mariadb
  : (await import("./postgres.mjs")).postgres;

const connected = () => database.connect(address);

/** Another process, which leads: what is measured is not slowed down by who measures. */
async function lead(/** @type {string} */ kind) {
  const cache = new XCache({ kvUrl, keyPrefix: "bench-feed" });
  const options = { connection: address, cache, tables: ["bench_users", "bench_pets"], rows: true };
  const feed = /** @type {BenchFeed} */ (database.feeds[kind]).open(options);
  await feed.ready();
  process.send?.("ready");
  await once(process, "message");
  await feed.close();
  await cache.disconnect();
  process.disconnect();
}

/**
 * @template T
 * @param {string} kind
 * @param {() => Promise<T>} work
 */
async function withLeader(kind, work) {
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

const bump = (/** @type {number} */ id) => `UPDATE bench_users SET n = n + 1 WHERE id = ${id}`;

/** What another program does to user `id`, by kind. @type {Record<string, (id: number) => string[]>} */
const WRITES = {
  update: (id) => [bump(id)],
  "function that writes": (id) => [database.callWrite(id)],
  trigger: (id) => [`UPDATE bench_pets SET n = n + 1 WHERE owner = ${id}`],
  "transaction of 5 statements": (id) => [
    "BEGIN",
    ...[1, 2, 3, 4].map((at) => bump(id + 100 + at)),
    bump(id),
    "COMMIT",
  ],
  "delete and insert": (id) => [
    "BEGIN",
    `DELETE FROM bench_users WHERE id = ${id}`,
    `INSERT INTO bench_users VALUES (${id}, 0)`,
    "COMMIT",
  ],
};

/** Milliseconds from a commit's return to the first miss. undefined: not within 10 s. */
async function staleness(
  /** @type {XCache} */ cache,
  /** @type {Client} */ client,
  /** @type {string[]} */ statements,
  /** @type {number} */ id,
) {
  const key = `user:${id}`;
  await cache.set(key, id, { ttl: 600, tags: [rowTag("bench_users", id), rowsTag("bench_users")] });
  for (const statement of statements) await client.query(statement);
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
      for (; performance.now() < end; commits++) await client.query(bump(at * 100 + (commits % 100)));
    }),
  );
  await Promise.all(clients.map((client) => client.end()));
  return Math.round(commits / seconds);
}

async function measure(/** @type {number} */ commits, /** @type {number} */ seconds) {
  const client = await connected();
  await client.query(database.setUp);
  const cache = new XCache({ kvUrl, keyPrefix: "bench-feed" });
  const figures = [`${await throughput(seconds)} transactions/s without a feed`];
  for (const [at, [name, { setUp }]] of Object.entries(database.feeds).entries()) {
    if (setUp !== undefined) await client.query(setUp);
    const reached = await withLeader(name, async () => {
      if (at === 0) await measureStaleness(cache, client, commits);
      return throughput(seconds);
    });
    figures.push(`${reached} with ${name}`);
  }
  console.log(`writers: ${figures.join(", ")}`);
  await cache.disconnect();
  await client.end();
}

async function measureStaleness(
  /** @type {XCache} */ cache,
  /** @type {Client} */ client,
  /** @type {number} */ commits,
) {
  const kinds = Object.entries(WRITES);
  for (const [kind, statementsFor] of kinds) {
    const times = [];
    for (let at = 0; at < commits / kinds.length; at++)
      times.push(await staleness(cache, client, statementsFor(at % 100), at % 100));
    const seen = times.filter((time) => time !== undefined);
    console.log(
      `${kind}: ${times.length} commits, p50 ${ms(percentile(seen, 0.5))}, p99 ${ms(percentile(seen, 0.99))}, longest ${ms(Math.max(...seen))}, ${times.length - seen.length} lost`,
    );
  }
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
