// The parts of typeorm that are used, described structurally; the package itself is never imported.
import type { DataSource, DataSourceOptions, EntityManager, QueryRunner } from "typeorm";
import type { MysqlConnection, MysqlPool } from "../mysql2/library.ts";
import type { PgClient, PgPool } from "../pg/library.ts";

export type { DataSource, EntityManager, QueryRunner };

type CacheProvider = NonNullable<
  Extract<NonNullable<DataSourceOptions["cache"]>, { readonly provider?: unknown }>["provider"]
>;
export type QueryResultCache = ReturnType<CacheProvider>;
export type QueryResultCacheOptions = Parameters<QueryResultCache["getFromCache"]>[0];

/** Its driver, of PostgreSQL, MySQL or SQLite. */
export interface TypeormDriver {
  readonly options: { readonly type: string };
  /** PostgreSQL. */
  master?: PgPool;
  slaves?: PgPool[];
  /** MySQL. */
  pool?: MysqlPool;
  /** MySQL with replicas. */
  poolCluster?: MysqlCluster;
  /** SQLite: the single connection, used by the single query runner. */
  readonly databaseConnection?: SqliteHandle;
  queryRunner?: QueryRunner | undefined;
  createQueryRunner(mode: string): QueryRunner;
}

export interface MysqlCluster {
  getConnection(name: string, callback: (error: unknown, connection?: MysqlConnection) => void): void;
}

export interface SqliteHandle {
  readonly inTransaction?: boolean;
  prepare(text: string): { all(...values: unknown[]): unknown[] };
}

/** A runner with the members that its public type hides. */
export interface OpenRunner {
  readonly driver: TypeormDriver;
  readonly dataSource: DataSource;
  connect(): Promise<PgClient | MysqlConnection>;
  getStmt?(text: string): Promise<unknown>;
  query(text: string, values?: unknown[], isStructured?: boolean): Promise<unknown>;
}

const MYSQL_TYPES = ["mysql", "mariadb"];
const TYPES = ["postgres", "better-sqlite3", ...MYSQL_TYPES];

export function driverOf(source: DataSource): TypeormDriver {
  return source.driver as unknown as TypeormDriver;
}

export function isPostgres({ options }: TypeormDriver): boolean {
  return options.type === "postgres";
}

export function isMysql({ options }: TypeormDriver): boolean {
  return MYSQL_TYPES.includes(options.type);
}

export function isDataSource(session: object): session is DataSource {
  const { createQueryRunner, entityMetadatas, driver } = session as Partial<DataSource>;
  const looksRight = typeof createQueryRunner === "function" && Array.isArray(entityMetadatas);
  return looksRight && driver !== undefined && TYPES.includes(driver.options.type);
}

/** That of a transaction has a query runner. */
export function isManager(session: object): session is EntityManager {
  const { dataSource, getRepository } = session as Partial<EntityManager>;
  return typeof getRepository === "function" && typeof dataSource === "object" && isDataSource(dataSource);
}

export function isRunner(session: object): session is QueryRunner {
  const { startTransaction, dataSource } = session as Partial<QueryRunner & OpenRunner>;
  return typeof startTransaction === "function" && typeof dataSource === "object" && isDataSource(dataSource);
}
