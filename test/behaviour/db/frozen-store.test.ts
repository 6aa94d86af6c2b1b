// A commit while the store of the cache does not answer: it is a commit all the same, and whoever made it sees no older row.
import type pg from "pg";
import { expect, test } from "vitest";
import { OperationTimeoutError } from "../../../src/core/errors.ts";
import { cachedDependency, testDatabase } from "../../db/database.ts";
import { SLACK_MS, TIMEOUT_MS, TROUBLED } from "../../support/kv/trouble.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const db = testDatabase();
const redis = redisCaches({ ...TROUBLED, nearCache: true });

/** A process with its own cache, whose session has read the row often enough to keep it near. */
async function acquaintedProcess() {
  const cache = redis.open();
  const session = cachedDependency(() => db.pool(), { cache, tableName: "users" })();
  for (let read = 0; read < 3; read++) expect(await nameIn(session)).toBe("Ada");
  return { cache, session };
}

const nameIn = async (session: pg.Pool): Promise<string> =>
  (await session.query<{ name: string }>("SELECT name FROM users WHERE id = $1", [1])).rows[0]!.name;

/** How it ended; late ones fail the test. */
async function inTime<T>(work: Promise<T>): Promise<T | Error> {
  const { ms, outcome } = await timed(work);
  expect(ms).toBeLessThan(TIMEOUT_MS + soon(SLACK_MS));
  return outcome;
}

test("a commit while the store is frozen returns in time, and is not forgotten", async () => {
  const [mine, other] = [await acquaintedProcess(), await acquaintedProcess()];
  await db.changeBehind("Eve");
  for (const { session } of [mine, other]) expect(await nameIn(session), "from the cache").toBe("Ada");
  redis.server.freeze();
  try {
    // What is sent now would be carried out later; what follows the end of the connection is not even sent.
    expect(await inTime(mine.cache.get("nothing"))).toBeInstanceOf(OperationTimeoutError);
    const commit = mine.session.query("BEGIN; UPDATE users SET name = 'Bob'; COMMIT");
    expect(await inTime(commit)).not.toBeInstanceOf(Error);
    expect(await inTime(nameIn(mine.session)), "what was near is not served").toBe("Bob");
  } finally {
    redis.server.thaw();
  }
  expect(await nameIn(mine.session), "nor what is in the store").toBe("Bob");
  await until(async () => (await nameIn(other.session)) === "Bob", { what: "the other process sees it" });
});
