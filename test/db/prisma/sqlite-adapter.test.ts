// What prisma's libsql adapter may throw, and whether the database refused the statement.
import { expect, test } from "vitest";
import type { ConnectionDriver, SessionTracker } from "../../../src/core/db-session.ts";
import type { LibsqlAdapter } from "../../../src/db/prisma/library.ts";
import { watchedLibsql } from "../../../src/db/prisma/sqlite-adapter.ts";

/** The driver of a connection to a file, or to a server. */
function driverOf(protocol: "file" | "http"): ConnectionDriver {
  let made: ConnectionDriver | undefined;
  const tracker = {
    connection: (_: object, make: () => ConnectionDriver) => {
      made = make();
    },
  } as unknown as SessionTracker;
  watchedLibsql({ client: { protocol } } as unknown as LibsqlAdapter, tracker);
  return made as ConnectionDriver;
}

test.each([null, undefined, "refused", 5, { cause: null }, new Error("refused"), { cause: "refused" }])(
  "an error without SQLite's number is a refusal only where no network is involved: %o",
  (error) => {
    expect(driverOf("file").isRefusal(error)).toBe(true);
    expect(driverOf("http").isRefusal(error)).toBe(false);
  },
);

test.each([
  [{ rawCode: 19 }, true],
  [{ rawCode: 10 }, false],
  [{ cause: { originalCode: "2067" } }, true],
  [{ cause: { originalCode: "266" } }, false],
])("SQLite's number decides: %o", (error, isRefusal) => {
  for (const protocol of ["file", "http"] as const)
    expect(driverOf(protocol).isRefusal(error)).toBe(isRefusal);
});
