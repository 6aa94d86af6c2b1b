// What of kysely is used, as its objects look; the package itself is never imported.
import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  DialectAdapter,
  Kysely,
  QueryExecutor,
  QueryResult,
} from "kysely";
import type { SqlDialect } from "../sql-tokens.ts";

export type { CompiledQuery, DatabaseConnection, QueryExecutor, QueryResult };
export type AnyKysely = Kysely<unknown>;
/** kysely has its classes declared once for import and once for require, and takes neither for the other: either will do. */
export type AnyDialect = { readonly [Member in keyof Dialect]: (session: never) => object };

/** Its dialects differ in what they can, which tells those that are known here from all others. */
export function dialectOf(adapter: DialectAdapter): SqlDialect | undefined {
  if (adapter.supportsReturning !== true) return undefined;
  return adapter.supportsTransactionalDdl ? "postgres" : "sqlite";
}

export function isKysely(session: object): session is AnyKysely {
  const { getExecutor, selectFrom, withPlugin } = session as Partial<AnyKysely>;
  if (![getExecutor, selectFrom, withPlugin].every((member) => typeof member === "function")) return false;
  const executor: Partial<QueryExecutor> | undefined = getExecutor?.call(session);
  return executor?.adapter !== undefined && dialectOf(executor.adapter) !== undefined;
}
