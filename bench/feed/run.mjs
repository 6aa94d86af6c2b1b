// How long after another program's commit its row is gone from the cache, how many reads remain hits, and what a feed costs
// writers. Needs Redis (XCACHE_KV_URL) and a separate database (DATABASE_URL): PostgreSQL with wal_level = logical and
// max_prepared_transactions, or MariaDB with a binary log in the row format. Writes bench/results/feed-<database>.md.
//   node bench/feed/run.mjs [--commits 500] [--seconds 5] [--rounds 3]
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { rowsTag, rowTag } from "../../dist/db/feed.js";
import { XCache } from "../../dist/index.js";
import { median } from "../timing.mjs";
import { measureHitRate } from "./hit-rate.mjs";
import { bump } from "./writes.mjs";

/**
 * @typedef {object} Client
 * @property {(text: string) => Promise<any>} query
 * @property {(text: string, rows: string) => Promise<void>} [copy]
 * @property {() => Promise<unknown>} end
 *
 * @typedef {object} Write
 * @property {string} [table] default: bench_users
 * @property {readonly string[]} [tags] default: those of the row
 * @property {boolean} [isOnce] a row can be written like this only once
 * @property {number} [shift] from the id given to that of the row
 * @property {(id: number, at: number) => readonly string[]} [statements]
 * @property {(client: Client, at: number) => Promise<void> | undefined} [write] instead of statements
 *
 * @typedef {import("../../dist/db/feed.js").Feed} Feed
 * @typedef {{ open(options: any): Feed, setUp?: string }} BenchFeed
 *
 * @typedef {object} BenchDatabase
 * @property {string} name
 * @property {readonly ("table" | "row")[]} tagsBy what reads of a session carry
 * @property {readonly string[]} tables
 * @property {(address: string) => Promise<Client>} connect
 * @property {string} version
 * @property {string} setUp
 * @property {Record<string, Write>} writes
 * @property {(address: string) => any} openPool
 * @property {(session: any, id: number) => Promise<number>} read
 * @property {Record<string, BenchFeed>} feeds
 */

const address = process.env.DATABASE_URL ?? "";
const kvUrl = process.env.XCACHE_KV_URL ?? "redis://localhost:6379/0";
const WRITERS = 8;
/** Rows that writes are spread over, unless each can be written only once. */
const HOT_ROWS = 100;
const LOST_MS = 10_000;

/** @type {BenchDatabase} */
const database = /^(mysql|mariadb):/.test(address)
  ? (await import("./mysql.mjs")).mariadb
  : (await import("./postgres.mjs")).postgres;

const connected = () => database.connect(address);

/** A separate process, which takes the lead: the measuring process does not slow down what is measured. */
async function lead(/** @type {string} */ kind) {
  const cache = new XCache({ kvUrl, keyPrefix: "bench-feed" });
  const options = { connection: address, cache, tables: database.tables, rows: true };
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

/**
 * Milliseconds from a commit's return to the first miss. undefined: not in time.
 * @param {XCache} cache @param {Client} client @param {Write} kind @param {number} at
 */
async function staleness(cache, client, { table = "bench_users", shift = 0, ...kind }, at) {
  const id = kind.isOnce ? at : at % HOT_ROWS;
  const tags = kind.tags ?? [rowTag(table, id + shift), rowsTag(table)];
  const key = `${table}:${id}`;
  await cache.set(key, id, { ttl: 600, tags: [...tags] });
  await kind.write?.(client, at);
  for (const statement of kind.statements?.(id, at) ?? []) await client.query(statement);
  const committed = performance.now();
  while ((await cache.get(key)) !== undefined) if (performance.now() - committed > LOST_MS) return undefined;
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

/** @param {string} feed @param {number} commits */
async function measureStaleness(feed, commits) {
  const client = await connected();
  const cache = new XCache({ kvUrl, keyPrefix: "bench-feed" });
  const rows = await withLeader(feed, async () => {
    const lines = [];
    for (const [name, kind] of Object.entries(database.writes)) {
      const times = [];
      for (let at = 0; at < commits; at++) times.push(await staleness(cache, client, kind, at));
      const seen = times.filter((time) => time !== undefined);
      const figures = [percentile(seen, 0.5), percentile(seen, 0.99), Math.max(...seen)].map(ms);
      lines.push(`| ${[name, commits, ...figures, commits - seen.length].join(" | ")} |`);
      console.log(lines.at(-1));
    }
    return lines;
  });
  await cache.disconnect();
  await client.end();
  return rows;
}

/** Each round measures without a feed right before each kind of feed; ratios are taken within a round. */
async function measureWriters(/** @type {number} */ rounds, /** @type {number} */ seconds) {
  const client = await connected();
  /** @type {Map<string, { without: number, with: number }[]>} */
  const taken = new Map(Object.keys(database.feeds).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, feed] of Object.entries(database.feeds)) {
      await client.query(database.setUp);
      await throughput(1);
      const without = await throughput(seconds);
      if (feed.setUp !== undefined) await client.query(feed.setUp);
      const reached = await withLeader(name, () => throughput(seconds));
      taken.get(name)?.push({ without, with: reached });
    }
  }
  await client.end();
  return [...taken].map(([name, figures]) => {
    const ratios = figures.map((each) => each.with / each.without);
    const shown = [median(figures.map((each) => each.without)), median(figures.map((each) => each.with))];
    const range = `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
    return `| ${[name, ...shown.map((each) => Math.round(each)), range].join(" | ")} |`;
  });
}

async function measure(
  /** @type {number} */ commits,
  /** @type {number} */ seconds,
  /** @type {number} */ rounds,
) {
  const client = await connected();
  await client.query(database.setUp);
  const answer = await client.query(database.version);
  const [{ server_version: version }] = answer.rows ?? answer[0];
  await client.end();
  const [feed = ""] = Object.keys(database.feeds);
  const load = loadavg()[0]?.toFixed(1);
  const staleRows = await measureStaleness(feed, commits);
  const hitRows = [];
  for (const by of database.tagsBy) {
    const options = { address, kvUrl, rows: by === "row", seconds: 4 * seconds };
    const { commits: made, reads, hitRate, stale } = await measureHitRate(database, options);
    hitRows.push(`| ${[by, made, reads, `${(hitRate * 100).toFixed(1)} %`, stale].join(" | ")} |`);
    console.log(hitRows.at(-1));
  }
  const report = `# A feed of ${database.name}

- server: ${database.name} ${version}; node: ${process.version} on ${process.platform} ${process.arch}, ${cpus().length} cores, load ${load} before
- command: \`node bench/feed/run.mjs --commits ${commits} --seconds ${seconds} --rounds ${rounds}\`
- Database, Redis, writers, reader and leader share the machine. Compare ratios: the rest depends on what else it does.

## Staleness

From the return of a commit in one process to the first miss in it, over Redis, with the leader in another process. Lost: not within 10 s.

| change by another program | commits | p50 | p99 | longest | lost |
| --- | ---: | ---: | ---: | ---: | ---: |
${staleRows.join("\n")}

## Hit rate

50 commits per second over 1,000 rows by another program; a reader asks for 100 hot rows by primary key in turn, one after the other, up to 1,000 per second. Stale: older than \`silentFor\`.

| tags by | commits | reads | hits | stale |
| --- | ---: | ---: | ---: | ---: |
${hitRows.join("\n")}

## Writers

${WRITERS} writers, each as fast as it can; transactions per second, medians of ${rounds} rounds, and the ratio within a round.

| feed | without | with | ratio |
| --- | ---: | ---: | ---: |
${(await measureWriters(rounds, seconds)).join("\n")}
`;
  console.log(report);
  writeFileSync(new URL(`../results/feed-${database.name.toLowerCase()}.md`, import.meta.url), report);
}

const { values } = parseArgs({
  options: {
    commits: { type: "string", default: "500" },
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    lead: { type: "string" },
  },
});
if (values.lead !== undefined) await lead(values.lead);
else await measure(Number(values.commits), Number(values.seconds), Number(values.rounds));
