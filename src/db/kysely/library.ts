// The parts of kysely that are used, described structurally; the package itself is never imported.
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
import type { SqlDialectName } from "../../core/db-session.ts";
import { hasMethod } from "../tracking/argument-checks.ts";

export type { CompiledQuery, DatabaseConnection, QueryExecutor, QueryResult };
export type AnyKysely = Kysely<unknown>;
/** Structural, because kysely declares its classes once for import and once for require, and the two are not compatible. */
export interface AnyDialect {
  createAdapter(): object;
  createDriver(): object;
  createIntrospector(session: never): object;
  createQueryCompiler(): object;
}

type DriverOf<Given extends AnyDialect> = ReturnType<Given["createDriver"]>;

/** A dialect like the given one, whose driver has only the members of any driver. */
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

export const isDialect = (value: unknown): value is Dialect =>
  MEMBERS.every((name) => hasMethod(value, name));

/** kysely does not name its dialects; their capabilities tell PostgreSQL and SQLite from the others. */
export function dialectOf(adapter: DialectAdapter | undefined): SqlDialectName | undefined {
  if (adapter?.supportsReturning !== true) return undefined;
  return adapter.supportsTransactionalDdl ? "postgres" : "sqlite";
}

export function isKysely(session: object): session is AnyKysely {
  const { getExecutor, selectFrom, withPlugin } = session as Partial<AnyKysely>;
  if (![getExecutor, selectFrom, withPlugin].every((member) => typeof member === "function")) return false;
  const executor: Partial<QueryExecutor> | undefined = getExecutor?.call(session);
  return executor?.adapter !== undefined && dialectOf(executor.adapter) !== undefined;
}
