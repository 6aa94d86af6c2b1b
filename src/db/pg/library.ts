// The parts of node-postgres that are used, described structurally; the package itself is never imported.
import type { EventEmitter } from "node:events";
import { ConfigError } from "../../core/errors.ts";
import { snapshot } from "../../core/snapshot.ts";

/** The argument of `client.query`. */
export interface QueryConfig {
  readonly text?: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  readonly rowMode?: string;
  readonly types?: TypeParsers;
  readonly binary?: boolean;
  readonly rows?: number;
  readonly portal?: string;
  readonly queryMode?: string;
  readonly query_timeout?: number;
  readonly callback?: Callback;
}

export interface TypeParsers {
  getTypeParser(oid: number, format?: string): (value: string) => unknown;
}

export type Callback = (error: unknown, result?: unknown) => void;

/** A query that drives the connection itself: a cursor, a stream, a `pg.Query`. */
export interface Submittable {
  submit(connection: unknown): unknown;
  handleError?(error: unknown, connection: unknown): void;
  handleReadyForQuery?(connection: unknown): void;
  readonly text?: unknown;
  /** A stream has one. */
  readonly cursor?: { readonly text?: unknown; close?: Close };
  close?: Close;
}

type Close = (callback?: (error?: unknown) => void) => Promise<void> | undefined;

export interface Field {
  readonly name: string;
  readonly tableID: number;
  readonly columnID: number;
  readonly dataTypeID: number;
  readonly dataTypeSize: number;
  readonly dataTypeModifier: number;
  readonly format: string;
}

export interface QueryResult {
  command: string | null;
  rowCount: number | null;
  oid: number | null;
  rows: unknown[];
  fields: Field[];
}

/** A result while it is being built. */
export interface ResultBuilder extends QueryResult {
  _types?: TypeParsers | undefined;
  addFields(fields: readonly Field[]): void;
  parseRow(row: readonly (string | null)[]): unknown;
  addRow(row: unknown): void;
}

export type QueryClass = new (config: QueryConfig) => { readonly _result?: ResultBuilder };

export interface PgClient extends EventEmitter {
  readonly connectionParameters: object;
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly binary?: boolean;
  readonly connection?: EventEmitter;
  readonly readyForQuery?: boolean;
  readonly _types?: TypeParsers;
  readonly _queryable?: boolean;
  readonly _ending?: boolean;
  readonly _ended?: boolean;
  readonly processID?: unknown;
  /** Only on a client that belongs to a pool. */
  release?(error?: unknown): void;
  connect(callback?: Callback): Promise<unknown> | undefined;
  query(query: unknown, values?: unknown, callback?: unknown): unknown;
  getTransactionStatus?(): string | null;
}

export interface PgPool extends EventEmitter {
  readonly options: object;
  /** The class of its clients. */
  readonly Client?: unknown;
  readonly totalCount: number;
  connect(
    callback?: (error: unknown, client?: PgClient, done?: unknown) => void,
  ): Promise<PgClient> | undefined;
  query(query: unknown, values?: unknown, callback?: unknown): unknown;
}

export function isClient(session: object): session is PgClient {
  const { query, connect, connectionParameters } = session as Partial<PgClient>;
  return (
    typeof query === "function" && typeof connect === "function" && typeof connectionParameters === "object"
  );
}

export function isPool(session: object): session is PgPool {
  const { query, connect, options, totalCount } = session as Partial<PgPool>;
  const isLikely = typeof query === "function" && typeof connect === "function";
  return isLikely && typeof options === "object" && typeof totalCount === "number";
}

/**
 * Throws ConfigError for the class of pg-native's clients. They do not show the server's messages, so that nobody would know
 * when a transaction ends.
 */
export function refuseNative(clientClass: unknown): void {
  const { Query } = (clientClass ?? {}) as { readonly Query?: { readonly prototype?: object } };
  if (Query?.prototype === undefined || "handleRowDescription" in Query.prototype) return;
  throw new ConfigError("ARGUMENT_INVALID", "connections of pg-native cannot be watched.", {
    hint: "Use the JavaScript client of the package pg. TypeORM takes the native one wherever pg-native is installed.",
  });
}

export function isSubmittable(query: unknown): query is Submittable {
  return (
    typeof query === "object" && query !== null && "submit" in query && typeof query.submit === "function"
  );
}

/** A call of `query` in any of its forms: text or config, values, callback. */
export interface QueryCall {
  readonly config: QueryConfig;
  readonly callback: Callback | undefined;
  /** The original arguments, without the callback. */
  readonly sent: readonly unknown[];
}

/** undefined: the arguments are invalid, and the library's own error should say why. */
export function queryCall(args: readonly unknown[]): QueryCall | undefined {
  const [query, second, third] = args;
  if (typeof query !== "string" && (typeof query !== "object" || query === null)) return undefined;
  const given: QueryConfig = typeof query === "string" ? { text: query } : query;
  const original = typeof second === "function" || !second ? given.values : (second as readonly unknown[]);
  // What is sent later must be what the key is made of now.
  const values = snapshot(original);
  const callback = third || (typeof second === "function" ? second : undefined) || given.callback;
  if (callback !== undefined && typeof callback !== "function") return undefined;
  const config = configOf(given, values);
  // The object may be of a class with more members than are known here.
  const sent = given.callback === undefined ? [sentQuery(query, given, values), values] : [config];
  return { config, callback: callback as Callback | undefined, sent };
}

/** The object itself, or one behind which it is where its values could be changed before they are sent. */
function sentQuery(query: unknown, given: QueryConfig, values: readonly unknown[] | undefined): unknown {
  return typeof query === "string" || given.values === undefined
    ? query
    : Object.create(given, { values: { value: values, writable: true, enumerable: true } });
}

/** Copies the fields that the library reads, which may be getters of a class. */
function configOf(given: QueryConfig, values: readonly unknown[] | undefined): QueryConfig {
  const { text, name, rowMode, types, binary, rows, portal, queryMode, query_timeout } = given;
  const config = { text, values, name, rowMode, types, binary, rows, portal, queryMode, query_timeout };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}
