// The parts of drizzle that are used, described structurally; the package itself is never imported.
import { isPromiseSession, type PromiseSession } from "../mysql2/library.ts";
import { isClient, isPool, type PgClient, type PgPool } from "../pg/library.ts";

const KIND = Symbol.for("drizzle:entityKind");

export interface SessionOptions {
  readonly logger?: unknown;
  readonly cache?: unknown;
}

interface SessionParts {
  readonly schema: unknown;
  readonly logger?: unknown;
  readonly cache?: unknown;
}

export interface PgSession extends SessionParts {
  readonly client: PgClient | PgPool;
  readonly options: SessionOptions;
}

export interface MysqlSession extends SessionParts {
  readonly client: PromiseSession;
  readonly options: SessionOptions;
}

/** Sends a statement to the database, wherever it is. */
export type RemoteCallback = (sql: string, params: unknown[], method: string) => Promise<{ rows?: unknown }>;
export type RemoteBatch = (
  queries: readonly { readonly sql: string; readonly params: readonly unknown[] }[],
) => Promise<unknown>;

export interface RemoteSession extends SessionParts {
  client: RemoteCallback;
  readonly batchCLient?: RemoteBatch;
}

export interface DrizzleDatabase<Session> {
  readonly dialect: object;
  readonly session: Session;
  readonly resultKind?: string;
  /** Of MySQL. */
  readonly mode?: string;
  /** Of a transaction: how many it is nested in. */
  readonly nestedIndex?: number;
  readonly $client?: unknown;
  $cache?: unknown;
}

export type DatabaseClass = new (...parts: readonly unknown[]) => object;

function kindOf(session: object): unknown {
  return (session.constructor as { readonly [KIND]?: unknown })[KIND];
}

export function isPgDatabase(session: object): session is DrizzleDatabase<PgSession> {
  if (!["NodePgDatabase", "NodePgTransaction"].includes(String(kindOf(session)))) return false;
  const { client } = (session as DrizzleDatabase<PgSession>).session;
  return isPool(client) || isClient(client);
}

export function isMysqlDatabase(session: object): session is DrizzleDatabase<MysqlSession> {
  if (!["MySql2Database", "MySql2Transaction"].includes(String(kindOf(session)))) return false;
  return isPromiseSession((session as DrizzleDatabase<MysqlSession>).session.client);
}

export function isRemoteDatabase(session: object): session is DrizzleDatabase<RemoteSession> {
  return ["SqliteRemoteDatabase", "SQLiteProxyTransaction"].includes(String(kindOf(session)));
}

/** Its driver (`better-sqlite3`, `bun:sqlite`, `expo-sqlite`) is synchronous, so it cannot use an async cache. */
export function isSynchronousDatabase(session: object): boolean {
  return (
    kindOf(session) !== undefined && (session as Partial<DrizzleDatabase<unknown>>).resultKind === "sync"
  );
}
