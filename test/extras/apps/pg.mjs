// What a session of node-postgres decides about statements, with PostgreSQL's own parser where it is installed, without it elsewhere.
import { createRequire } from "node:module";
import pg from "pg";
import { cachedDependency, explain, XCache } from "xcache";
import { check, works } from "./check.mjs";

const hasParser = (() => {
  try {
    return createRequire(import.meta.url).resolve("libpg-query") !== "";
  } catch {
    return false;
  }
})();

const cache = new XCache({ kvUrl: "memory://" });
// Nothing is sent over it.
const pool = new pg.Pool();
const session = cachedDependency(() => pool, { cache, tableName: "users" })();

const CHANGES = "WITH gone AS (DELETE FROM users RETURNING id) SELECT * FROM gone";
const [parsed, tokenized] = [
  {
    "TABLE users": [true, "it only reads tables in tableName"],
    [CHANGES]: [false, "taken for a write of users: it changes users"],
    "SELECT xmlelement(name a) FROM users": [
      false,
      "taken for a write of every table in tableName: its parse tree has XmlExpr, which is not known",
    ],
    "SELECT id FROM users WHERE name = U&'\\0061' AND at < current_date": [
      false,
      '"current_date" is not the same for every reader',
    ],
    "SELECT * FROM users AS OF SYSTEM TIME 1": [false, "PostgreSQL's parser does not accept it"],
  },
  {
    "TABLE users": [false, "it reads no table that is certain"],
    [CHANGES]: [false, "taken for a write of every table in tableName: it begins with WITH"],
  },
];
for (const [text, expected] of Object.entries(hasParser ? parsed : tokenized)) {
  const { isCached, reason } = await explain(session, text);
  check([isCached, reason], expected, text);
}
check(
  (await explain(session, "SELECT now() FROM users")).reason,
  "it calls now(), whose result changes",
  "a call",
);
works("pg", ...(hasParser ? ["libpg-query"] : []));
