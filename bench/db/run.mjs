// What a database session costs its reads: through xcache and through the driver alone, in turns. Needs PostgreSQL
// (DATABASE_URL). Writes bench/results/db.md.
//   node bench/db/run.mjs [--against <another checkout with dist>] [--rounds 15]
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { median } from "../timing.mjs";

const ROWS = 100_000;
/** Calls one after another in a measurement. */
const CALLS = 400;
const NAME = "SELECT id, name FROM bench_names WHERE id = $1";
/** The catalogue is asked about the functions as well. */
const CALLS_FUNCTIONS = "SELECT id, lower(name) AS name FROM bench_names WHERE id = $1";
/** Not cacheable: it depends on the time. */
const UNCACHEABLE = "SELECT id, name, now() FROM bench_names WHERE id = $1";

const { values } = parseArgs({
  options: { against: { type: "string" }, rounds: { type: "string", default: "15" } },
});
const rounds = Number(values.rounds);
const connectionString = process.env.DATABASE_URL;
if (connectionString === undefined || !(rounds >= 1)) {
  console.error(
    "usage: DATABASE_URL=postgres://... node bench/db/run.mjs [--against <checkout>] [--rounds <n>]",
  );
  process.exit(2);
}

/** @typedef {{ query(text: string, values: unknown[]): Promise<unknown> }} Session */
/** @typedef {{ session: Session, close(): Promise<void> }} Opened */

/** @returns {Promise<Opened>} */
async function driver() {
  const pool = new pg.Pool({ connectionString, max: 1 });
  return { session: pool, close: () => pool.end() };
}

/**
 * @param {string} checkout
 * @returns {Promise<Opened>}
 */
async function cachedSession(checkout) {
  const { XCache, cachedDependency } = await import(pathToFileURL(join(checkout, "dist/index.js")).href);
  const pool = new pg.Pool({ connectionString, max: 1 });
  const cache = new XCache({ kvUrl: "memory://", defaultTtl: 3_600 });
  const session = cachedDependency(() => pool, { cache, tableName: "bench_names" })();
  return { session, close: () => Promise.all([pool.end(), cache.disconnect()]).then(() => {}) };
}

let next = 0;
/** A row that was not read before, until all were. */
const fresh = () => (next = (next % ROWS) + 1);

/** @type {Record<string, (session: Session) => Promise<unknown>>} */
const READS = {
  "a hit": (session) => session.query(NAME, [1]),
  "a miss, which is stored": (session) => session.query(NAME, [fresh()]),
  "a miss with a call": (session) => session.query(CALLS_FUNCTIONS, [fresh()]),
  "not cacheable": (session) => session.query(UNCACHEABLE, [fresh()]),
};

/**
 * Microseconds a call.
 * @param {Session} session
 * @param {(session: Session) => Promise<unknown>} read
 */
async function time(session, read) {
  const start = performance.now();
  for (let call = 0; call < CALLS; call++) await read(session);
  return ((performance.now() - start) * 1_000) / CALLS;
}

async function setUp() {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query("DROP TABLE IF EXISTS bench_names");
  await client.query("CREATE TABLE bench_names (id int PRIMARY KEY, name text NOT NULL)");
  await client.query(
    `INSERT INTO bench_names SELECT id, 'name ' || id FROM generate_series(1, ${ROWS}) AS id`,
  );
  const { rows } = await client.query("SHOW server_version");
  await client.end();
  return rows[0].server_version;
}

const version = await setUp();
const here = fileURLToPath(new URL("../..", import.meta.url));
const opened = {
  "pg alone": await driver(),
  ...(values.against === undefined ? {} : { before: await cachedSession(resolve(values.against)) }),
  xcache: await cachedSession(here),
};
/** @type {Map<string, number[]>} */
const figures = new Map();
// The first round warms up.
for (let round = 0; round <= rounds; round++) {
  for (const [kind, read] of Object.entries(READS)) {
    for (const [name, { session }] of Object.entries(opened)) {
      const figure = await time(session, read);
      if (round > 0) figures.set(`${kind} ${name}`, [...(figures.get(`${kind} ${name}`) ?? []), figure]);
    }
  }
}
for (const { close } of Object.values(opened)) await close();

const names = Object.keys(opened);
const row = (/** @type {string[]} */ ...cells) => `| ${cells.join(" | ")} |`;
const lines = Object.keys(READS).map((kind) => {
  const medians = names.map((name) => median(figures.get(`${kind} ${name}`) ?? []));
  const more = (medians.at(-1) ?? 0) - (medians[0] ?? 0);
  return row(kind, ...medians.map((figure) => figure.toFixed(0)), more.toFixed(0));
});
const against = values.against === undefined ? "" : " --against <checkout>";
const command = `node bench/db/run.mjs --rounds ${rounds}${against}`;
const report = `# Reads of a database session

- node: ${process.version} on ${process.platform} ${process.arch}, ${cpus().length} x ${cpus()[0]?.model}
- server: PostgreSQL ${version}
- load average at the end: ${loadavg()[0]?.toFixed(1)}
- command: \`${command}\`

Point reads by primary key over loopback, one after another on one connection, the cache in memory. Microseconds a call, medians of ${rounds} rounds
of ${CALLS} calls in turns. A hit is compared with what the driver takes to ask the server.

${row("read", ...names, "xcache more than pg alone")}
${row("---", ...names.map(() => "---:"), "---:")}
${lines.join("\n")}
`;
console.log(report);
writeFileSync(new URL("../results/db.md", import.meta.url), report);
