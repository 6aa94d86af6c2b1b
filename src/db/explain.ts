// `explain`: what a session of `cachedDependency` does with a statement, and why.

import { watchedSession } from "../core/db-session.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { Explanation } from "./tracking/explanation.ts";

export type { Explanation } from "./tracking/explanation.ts";

/**
 * Explains a statement without sending it: whether it is cached and why, its tables and tags, and by which word it is taken
 * for a write. `session` is one that `cachedDependency` has handed out. Throws ConfigError ARGUMENT_INVALID.
 */
export async function explain(session: object, statement: string): Promise<Explanation> {
  const isObject = (typeof session === "object" && session !== null) || typeof session === "function";
  const watched = isObject ? watchedSession(session) : undefined;
  if (watched?.dialect === undefined) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `explain(): expected a session that cachedDependency has handed out, got ${describeArrival(session)}.`,
      {
        hint: "Call the wrapped dependency and pass what it returns. Sessions of prisma and of adapters without `dialect` are not explained; DEBUG=xcache:db shows their statements.",
      },
    );
  }
  if (typeof statement !== "string") {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `explain(): expected the text of a statement, got ${describeArrival(statement)}.`,
    );
  }
  const [{ explainStatement }, { postgresParser }] = await Promise.all([
    import("./tracking/explanation.ts"),
    import("./sql/postgres-parser.ts"),
  ]);
  // A session decides without it only until it is loaded.
  if (watched.dialect === "postgres") await postgresParser.load();
  return explainStatement(watched.scope, watched.dialect, statement);
}
