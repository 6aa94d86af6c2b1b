// The parts of knex that are used, described structurally; the package itself is never imported.
import type { EventEmitter } from "node:events";

/** A compiled statement and, once it has run, its response. */
export interface QueryObject {
  sql: string;
  bindings?: readonly unknown[];
  readonly options?: object;
  readonly method?: string;
  response?: unknown;
}

/** A pooled connection: the driver's own object. */
export interface KnexConnection {
  readonly inTransaction?: boolean;
  __knex__disposed?: unknown;
}

export interface KnexClient extends EventEmitter {
  readonly dialect: string;
  readonly driverName: string;
  readonly pool?: object;
  /** True for the client of a transaction. */
  readonly transacting?: boolean;
  acquireConnection(): Promise<KnexConnection>;
  releaseConnection(connection: KnexConnection): Promise<void>;
  query(connection: KnexConnection, query: QueryObject | string): Promise<QueryObject>;
  _query(connection: KnexConnection, query: QueryObject): Promise<QueryObject>;
  _stream(connection: KnexConnection, query: QueryObject, ...rest: unknown[]): Promise<unknown>;
  runner(builder: unknown): object;
  destroy(callback?: unknown): Promise<void>;
  initializePool(config?: unknown): void;
}

export type KnexClientClass = abstract new (...args: never[]) => KnexClient;

/** `knex` itself or a transaction, which has the same members and can be committed. */
export interface KnexSession {
  (...args: never[]): object;
  readonly client: KnexClient;
  readonly context: object;
  readonly isTransaction?: boolean;
  /** That of a nested transaction. */
  readonly parentTransaction?: KnexSession;
  commit?(value?: unknown): Promise<unknown>;
  rollback?(error?: unknown): Promise<unknown>;
}

const DIALECTS: readonly unknown[] = ["postgresql", "sqlite3", "mysql"];

export function isKnex(session: object): session is KnexSession {
  if (typeof session !== "function") return false;
  const { client, context } = session as Partial<KnexSession>;
  const hasParts = typeof client === "object" && client !== null && typeof context === "object";
  if (!hasParts || typeof client._query !== "function") return false;
  return DIALECTS.includes(client.dialect) && (client.dialect !== "mysql" || client.driverName === "mysql2");
}
