// The parts of prisma that are used, described structurally; the package itself is never imported.
import { isPool, type PgPool } from "../pg/library.ts";

/** What `new PrismaClient({ adapter })` takes from Prisma 6.6 on. */
export interface SqlDriverAdapterFactory {
  readonly adapterName: string;
  connect(): Promise<object>;
}

export interface SqlQuery {
  sql: string;
  args: unknown[];
  argTypes: unknown[];
}

export interface ResultSet {
  columnNames: string[];
  columnTypes: number[];
  rows: unknown[][];
  lastInsertId?: string;
}

interface Queryable {
  readonly adapterName: string;
  queryRaw(query: SqlQuery): Promise<ResultSet>;
  executeRaw(query: SqlQuery): Promise<number>;
}

export interface SqlDriverAdapter extends Queryable {
  executeScript(script: string): Promise<void>;
  startTransaction(isolationLevel?: string): Promise<Transaction>;
}

interface Transaction extends Queryable {
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** The adapter of libsql. */
export interface LibsqlAdapter extends SqlDriverAdapter {
  /** `protocol`: `file`, or how a server is reached. */
  readonly client: { readonly protocol: string };
  readonly adapterOptions?: unknown;
  startTransaction(...args: Parameters<SqlDriverAdapter["startTransaction"]>): Promise<LibsqlTransaction>;
}

export interface LibsqlTransaction extends Transaction {
  /** `closed`: the transaction has ended, by commit or otherwise. */
  readonly client: { readonly closed: boolean };
  readonly adapterOptions?: unknown;
}

/** The adapter of node-postgres, which has a pool. */
export interface PgAdapter extends SqlDriverAdapter {
  readonly client: PgPool;
}

/** A connection of the package mariadb. */
export interface MariadbConnection {
  /** The same object for the same connection. `status`: the flags that the server sent last. */
  readonly info: { readonly status: number | null; readonly port?: number };
  query(options: object, values?: unknown): Promise<unknown>;
  execute(options: object, values?: unknown): Promise<unknown>;
  ping(): Promise<void>;
  isValid(): boolean;
  release(): Promise<void>;
  on(event: string, listener: (error: unknown) => void): unknown;
  off(event: string, listener: (error: unknown) => void): unknown;
}

/** The adapter of MySQL and MariaDB, which has a pool of the package mariadb. */
export interface MariadbAdapter extends SqlDriverAdapter {
  readonly client: { getConnection(): Promise<MariadbConnection> };
  readonly mariadbOptions?: unknown;
}

export interface Engine {
  stop(): Promise<void>;
}

interface EngineConfig {
  readonly adapter?: SqlDriverAdapterFactory;
}

/** The internals of a client. */
export interface ClientParts {
  readonly _originalClient: ClientParts;
  readonly _engine: Engine;
  readonly _engineConfig: EngineConfig;
  readonly _requestHandler: { readonly logEmitter: unknown };
  readonly _clientVersion?: string;
  readonly _extensions: unknown;
  $extends(extension: object): object;
  $on?: unknown;
}

export function isPgAdapter(adapter: SqlDriverAdapter): adapter is PgAdapter {
  const { client } = adapter as Partial<PgAdapter>;
  return typeof client === "object" && client !== null && isPool(client);
}

export function isLibsqlAdapter(adapter: SqlDriverAdapter): adapter is LibsqlAdapter {
  return adapter.adapterName === LIBSQL && typeof (adapter as Partial<LibsqlAdapter>).client === "object";
}

export function isMariadbAdapter(adapter: SqlDriverAdapter): adapter is MariadbAdapter {
  const { client } = adapter as Partial<MariadbAdapter>;
  return adapter.adapterName === MARIADB && typeof client?.getConnection === "function";
}

/** A result as a new object for its reader; undefined if `data` is none. */
export function restoreResult(data: unknown): ResultSet | undefined {
  const isResult = typeof data === "object" && data !== null && "rows" in data && Array.isArray(data.rows);
  if (!isResult) return undefined;
  const result = data as ResultSet;
  return { ...result, rows: result.rows.map((row) => [...row]) };
}

const LIBSQL = "@prisma/adapter-libsql";
const MARIADB = "@prisma/adapter-mariadb";
const ADAPTERS: readonly unknown[] = ["@prisma/adapter-pg", LIBSQL, MARIADB];

/** A client over a supported adapter; a transaction client has no `$extends` and is not one. */
export function isPrismaClient(session: object): session is ClientParts {
  const { $extends, _engine, _engineConfig } = session as Partial<ClientParts>;
  const looksRight = typeof $extends === "function" && typeof _engine === "object";
  return looksRight && ADAPTERS.includes(_engineConfig?.adapter?.adapterName);
}
