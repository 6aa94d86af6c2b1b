// The tracker's own question is never the first one of a transaction: a database that refuses it would fail that.
import { expect, test } from "vitest";
import type { CacheForSessions, ConnectionDriver } from "../../../src/core/db-session.ts";
import { trackSessions } from "../../../src/db/tracking/session.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const cache = { get: async () => undefined, invalidateTags: async () => {} } as unknown as CacheForSessions;

test("settings are queried on each connection before its first transaction, even if equal connections have answered", async () => {
  const tracker = trackSessions({ cache, tables: ["users"] }, new ManualClock());
  const made = (answers: boolean) => {
    const log: string[] = [];
    const driver: ConnectionDriver = {
      dialect: "postgres",
      database: "the same",
      async query() {
        log.push("question");
        if (!answers) throw new Error("refused");
        return [{ fingerprint: "x", isolation: "serializable", unshareable: "false", tables: "users" }];
      },
      isRefusal: () => true,
    };
    const connection = tracker.connection({}, () => driver);
    const run = (text: string) => {
      const execute = async () => void log.push(text);
      return connection.run({ text, execute, cacheable: { fetch: execute, restore: () => undefined } });
    };
    return { log, run };
  };
  for (const answers of [true, false]) {
    const { log, run } = made(answers);
    for (const text of ["BEGIN", "SELECT * FROM users", "COMMIT"]) await run(text);
    expect(log.indexOf("question"), String(answers)).toBe(0);
    if (!answers) expect(log).toEqual(["question", "BEGIN", "SELECT * FROM users", "COMMIT"]);
  }
});
