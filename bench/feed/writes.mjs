// What another program writes to the benchmark's tables, on any database.
import { tableTag } from "../../dist/index.js";

/** @typedef {import("./run.mjs").Write} Write */

/** How many rows can be changed, each once. */
export const ROWS = 1_000;

/** The write affects a read of the whole table, since its row was in no cache before. */
export const byTable = { tags: [tableTag("bench_users")] };

export const bump = (/** @type {number} */ id) => `UPDATE bench_users SET n = n + 1 WHERE id = ${id}`;

/**
 * Writes to `bench_users`.
 * @param {(id: number) => string} callWrite calls the function that writes
 * @returns {Record<string, Write>}
 */
export const users = (callWrite) => ({
  INSERT: {
    ...byTable,
    statements: (_, at) => [`INSERT INTO bench_users VALUES (${2 * ROWS + at}, 0)`],
  },
  UPDATE: { statements: (id) => [bump(id)] },
  DELETE: {
    isOnce: true,
    statements: (id) => [`DELETE FROM bench_users WHERE id = ${id + ROWS}`],
    shift: ROWS,
  },
  "`DELETE` and `INSERT`": {
    statements: (id) => [
      "BEGIN",
      `DELETE FROM bench_users WHERE id = ${id}`,
      `INSERT INTO bench_users VALUES (${id}, 0)`,
      "COMMIT",
    ],
  },
  "transaction of 5 statements": {
    statements: (id) => ["BEGIN", ...[1, 2, 3, 4].map((more) => bump(id + 100 + more)), bump(id), "COMMIT"],
  },
  "trigger of another table": {
    statements: (id) => [`UPDATE bench_pets SET n = n + 1 WHERE owner = ${id}`],
  },
  "function that writes": { statements: (id) => [callWrite(id)] },
});
