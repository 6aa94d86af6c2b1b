// What of kysely is used, as its objects look; the package itself is never imported.
import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  DialectAdapter,
  Driver,
  Kysely,
  QueryExecutor,
  QueryResult,
} from "kysely";
import type { SqlDialect } from "../sql/sql-tokens.ts";
import { hasMethod } from "../tracking/handed-over.ts";

export type { CompiledQuery, DatabaseConnection, QueryExecutor, QueryResult };
export type AnyKysely = Kysely<unknown>;
/** kysely has its classes declared once for import and once for require, and takes neither for the other: either will do. */
export interface AnyDialect {
  createAdapter(): object;
  createDriver(): object;
  createIntrospector(session: never): object;
  createQueryCompiler(): object;
}

type DriverOf<Given extends AnyDialect> = ReturnType<Given["createDriver"]>;

/** A dialect like the given one, whose driver has what any driver has. */
export interface DialectLike<Given extends AnyDialect> {
  readonly createAdapter: Given["createAdapter"];
  createDriver(): Pick<DriverOf<Given>, keyof Driver & keyof DriverOf<Given>>;
  readonly createIntrospector: Given["createIntrospector"];
  readonly createQueryCompiler: Given["createQueryCompiler"];
}

const MEMBERS: readonly (keyof Dialect)[] = [
  "createAdapter",
  "createDriver",
  "createIntrospector",
  "createQueryCompiler",
];

export const isDialect = (handed: unknown): handed is Dialect =>
  MEMBERS.every((name) => hasMethod(handed, name));

/** Its dialects differ in what they can, which tells those that are known here from all others. */
export function dialectOf(adapter: DialectAdapter | undefined): SqlDialect | undefined {
  if (adapter?.supportsReturning !== true) return undefined;
  return adapter.supportsTransactionalDdl ? "postgres" : "sqlite";
}

export function isKysely(session: object): session is AnyKysely {
  const { getExecutor, selectFrom, withPlugin } = session as Partial<AnyKysely>;
  if (![getExecutor, selectFrom, withPlugin].every((member) => typeof member === "function")) return false;
  const executor: Partial<QueryExecutor> | undefined = getExecutor?.call(session);
  return executor?.adapter !== undefined && dialectOf(executor.adapter) !== undefined;
}
