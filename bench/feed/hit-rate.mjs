// The hit rate on hot rows while another program commits to all rows, by table tags and by row tags.
import { setTimeout as after } from "node:timers/promises";
import { cachedDependency, XCache } from "../../dist/index.js";
import { bump, ROWS } from "./writes.mjs";

/** @typedef {import("./run.mjs").BenchDatabase} BenchDatabase */

const COMMITS_PER_SECOND = 50;
const READS_PER_SECOND = 1_000;
const HOT = 100;
const SILENT_FOR = 2;

/** Calls `work(n)` at this rate per second on average, whatever a call takes. @param {(at: number) => Promise<unknown>} work */
async function paced(/** @type {number} */ perSecond, /** @type {number} */ seconds, work) {
  const began = performance.now();
  for (let at = 0; ; at++) {
    const early = began + (at * 1_000) / perSecond - performance.now();
    if (early > 0) await after(early);
    if (performance.now() - began > seconds * 1_000) return at;
    await work(at);
  }
}

/** Commits of other programs, and the oldest value that a read may return. */
class Committed {
  /** @type {Map<number, { n: number, at: number }[]>} */
  #byRow = new Map();

  add(/** @type {number} */ id) {
    const commits = this.#byRow.get(id) ?? [];
    commits.push({ n: (commits.at(-1)?.n ?? 0) + 1, at: performance.now() });
    this.#byRow.set(id, commits);
  }

  /** The value of a row that was committed at least this long ago. */
  least(/** @type {number} */ id, /** @type {number} */ seconds) {
    const until = performance.now() - seconds * 1_000;
    return this.#byRow.get(id)?.findLast(({ at }) => at <= until)?.n ?? 0;
  }
}

/**
 * @param {BenchDatabase} database
 * @param {{ address: string, kvUrl: string, rows: boolean, seconds: number }} options
 */
export async function measureHitRate(database, { address, kvUrl, rows, seconds }) {
  const outside = await database.connect(address);
  await outside.query(database.setUp);
  const cache = new XCache({ kvUrl, keyPrefix: `bench-hits-${rows}` });
  const [{ open }] = /** @type {[any]} */ (Object.values(database.feeds));
  const feed = open({ connection: address, cache, tables: database.tables, rows, silentFor: SILENT_FOR });
  await feed.ready();
  const pool = database.openPool(address);
  let misses = 0;
  pool.on("acquire", () => misses++);
  const session = cachedDependency(() => pool, { cache, tableName: "bench_users", ttl: 600, feed })();
  for (let id = 0; id < HOT; id++) await database.read(session, id);
  misses = 0;
  const committed = new Committed();
  let stale = 0;
  const [commits, reads] = await Promise.all([
    paced(COMMITS_PER_SECOND, seconds, async () => {
      const id = Math.floor(Math.random() * ROWS);
      await outside.query(bump(id));
      committed.add(id);
    }),
    paced(READS_PER_SECOND, seconds, async (at) => {
      const least = committed.least(at % HOT, SILENT_FOR);
      if ((await database.read(session, at % HOT)) < least) stale++;
    }),
  ]);
  await feed.close();
  await Promise.all([pool.end(), outside.end(), cache.disconnect()]);
  return { commits, reads, stale, hitRate: 1 - misses / reads };
}
