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
  const { getRepository } = session as Partial<EntityManager>;
  return typeof getRepository === "function" && ownerOf(session) !== undefined;
}

export function isRunner(session: object): session is QueryRunner {
  const { startTransaction } = session as Partial<QueryRunner>;
  return typeof startTransaction === "function" && ownerOf(session) !== undefined;
}

/** The data source of a manager or a query runner. typeorm 0.3 calls it `connection`. */
export function ownerOf(session: object): DataSource | undefined {
  const { dataSource, connection } = session as { dataSource?: object; connection?: object };
  const owner = dataSource ?? connection;
  return typeof owner === "object" && isDataSource(owner) ? owner : undefined;
}
