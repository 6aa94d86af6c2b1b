// The parts of mysql2 that are used, described structurally; the package itself is never imported.
import type { EventEmitter } from "node:events";
import { snapshot } from "../../core/snapshot.ts";

/** What the server sends: a header of four bytes, then the content. */
export interface Packet {
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  isEOF(): boolean;
}

export type PacketClass = new (id: number, buffer: Buffer, start: number, end: number) => Packet;

/** One of the commands that a connection carries out in turn: a query, an execution of a prepared statement, a ping. */
export interface Command extends EventEmitter {
  readonly sql?: string;
  readonly values?: unknown;
  /** Of an execution. */
  readonly statement?: { readonly query?: string };
  onResult?: Callback | undefined;
  /** What deals with the next packet. */
  readonly next?: unknown;
  readonly resultsetHeader?: unknown;
  readonly infileOk?: unknown;
  readonly _rows?: readonly unknown[];
  readonly _fields?: readonly unknown[];
  /** Returns whether it is over. */
  execute(packet: Packet | undefined, connection: object): boolean;
  done?(): null;
}

export type CommandClass = new (options: object, callback: Callback) => Command;

export type Callback = (error: unknown, rows?: unknown, fields?: unknown) => void;

export interface Config {
  readonly host?: string;
  readonly port?: number;
  readonly socketPath?: string;
  readonly rowsAsArray?: boolean;
}

interface ConnectionClass {
  createQuery(sql: unknown, values: unknown, callback: Callback | undefined, config: Config): Command;
}

export interface MysqlConnection extends EventEmitter {
  readonly config: Config;
  readonly stream: EventEmitter;
  readonly clientEncoding?: string;
  readonly _mariadbExtendedMetadata?: boolean;
  readonly _closing?: boolean;
  readonly _fatalError?: unknown;
  readonly _protocolError?: unknown;
  addCommand(command: Command): Command;
  query(sql: unknown, values?: unknown, callback?: Callback): Command;
  execute(sql: unknown, values?: unknown, callback?: Callback): Command;
  prepare(options: unknown, callback?: (error: unknown, statement?: PreparedStatement) => void): unknown;
  format(sql: string, values: unknown, namedPlaceholders?: boolean): string;
  ping(callback: (error: unknown) => void): void;
  reset(callback: (error: unknown) => void): void;
  changeUser(options: unknown, callback: (error: unknown) => void): void;
  end(callback: (error: unknown) => void): void;
  promise(implementation?: unknown): PromiseSession;
  destroy(): void;
  /** Only on a connection of a pool. */
  release?(): void;
}

export interface PreparedStatement {
  readonly query?: string;
  execute(values?: unknown, callback?: Callback): unknown;
  close(): unknown;
}

export interface MysqlPool extends EventEmitter {
  readonly config: { readonly connectionConfig: Config };
  getConnection(callback: (error: unknown, connection?: MysqlConnection) => void): void;
  releaseConnection(connection: MysqlConnection): void;
  query(sql: unknown, values?: unknown, callback?: Callback): Command;
  execute(sql: unknown, values?: unknown, callback?: Callback): unknown;
  promise(implementation?: unknown): PromiseSession;
}

/** A pool or connection whose methods return promises, over one with callbacks. */
export interface PromiseSession extends EventEmitter {
  readonly pool?: MysqlPool;
  readonly connection?: MysqlConnection;
  readonly Promise?: unknown;
}

const has = (value: object, ...names: readonly string[]): boolean =>
  names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

export function isMysqlPool(session: object): session is MysqlPool {
  if (!isObject(session)) return false;
  const { config } = session as Partial<MysqlPool>;
  return has(session, "getConnection", "query", "execute", "promise") && isObject(config?.connectionConfig);
}

export function isMysqlConnection(session: object): session is MysqlConnection {
  const { config } = session as Partial<MysqlConnection>;
  return has(session, "addCommand", "query", "execute", "beginTransaction") && isObject(config);
}

export function isPromiseSession(session: object): session is PromiseSession {
  const { pool, connection } = session as PromiseSession;
  if (!has(session, "query", "execute")) return false;
  return (isObject(pool) && isMysqlPool(pool)) || (isObject(connection) && isMysqlConnection(connection));
}

/** The session of the same class over another pool or connection. */
export function promisesOver(session: PromiseSession, inner: object): PromiseSession {
  const Same = session.constructor as new (inner: object, implementation: unknown) => PromiseSession;
  return new Same(inner, session.Promise);
}

/** A new command that is not sent. */
export function commandOf(connection: MysqlConnection, ...args: [unknown, unknown, Callback?]): Command {
  const [sql, values, callback] = args;
  const library = connection.constructor as unknown as ConnectionClass;
  return library.createQuery(sql, values, callback, connection.config);
}

/** What a call of the library would send now, to be sent later. */
export interface Unsent {
  /** What the call returns. */
  readonly command: Command;
  readonly commands: readonly Command[];
}

/** `call` must use the connection that it is given. */
export function withoutSending(
  connection: MysqlConnection,
  call: (idle: MysqlConnection) => unknown,
): Unsent {
  const commands: Command[] = [];
  const addCommand = (command: Command): Command => {
    commands.push(command);
    return command;
  };
  const idle = Object.create(connection, { addCommand: { value: addCommand } }) as MysqlConnection;
  return { command: call(idle) as Command, commands };
}

/** A call of `query` or `execute` in any of its forms. */
export interface StatementCall {
  readonly method: "query" | "execute";
  readonly options: { readonly sql: string; readonly values?: unknown; readonly namedPlaceholders?: boolean };
  readonly callback: Callback | undefined;
}

/** undefined: the arguments are invalid or a command, and the library deals with them itself. */
export function statementCall(
  method: StatementCall["method"],
  [first, second, third]: readonly unknown[],
): StatementCall | undefined {
  const callback = [second, third].find((each) => typeof each === "function") as Callback | undefined;
  const given = typeof first === "string" ? { sql: first } : first;
  if (!isObject(given) || typeof (given as { readonly sql?: unknown }).sql !== "string") return undefined;
  if ("onResult" in given) return undefined;
  const own = (given as { readonly values?: unknown }).values;
  const values = typeof second === "function" || second === undefined ? own : second;
  // What is sent later must be what the key is made of now.
  const options = { ...given, values: snapshot(values) } as StatementCall["options"];
  return { method, options, callback };
}
