// A connection of mysql2 whose statements are watched.
import type { SessionStatement, SessionTracker, TrackedConnection } from "../../core/db-session.ts";
import { proxyOf } from "../tracking/proxy.ts";
import { MysqlDriver } from "./driver.ts";
import { type Answer, keptResult, restoreKept } from "./kept-result.ts";
import {
  type Callback,
  type Command,
  commandOf,
  type MysqlConnection,
  type PreparedStatement,
  promisesOver,
  type StatementCall,
  statementCall,
} from "./library.ts";

export interface WatchedConnection {
  readonly connection: MysqlConnection;
  readonly driver: MysqlDriver;
  readonly tracked: TrackedConnection;
}

const drivers = new WeakMap<MysqlConnection, MysqlDriver>();

/** Call it whenever a connection is handed out. */
export function watchConnection(connection: MysqlConnection, tracker: SessionTracker): WatchedConnection {
  let driver = drivers.get(connection);
  const tracked = tracker.connection(connection, () => {
    const made = new MysqlDriver(connection, () => tracked.settingsChanged());
    drivers.set(connection, made);
    driver = made;
    return made;
  });
  return { connection, driver: driver!, tracked };
}

export function wrapConnection(watched: WatchedConnection): MysqlConnection {
  const { connection } = watched;
  const query = (...args: unknown[]) => run(watched, "query", args);
  const wrapped: MysqlConnection = proxyOf(connection, {
    query,
    execute: (...args: unknown[]) => run(watched, "execute", args),
    beginTransaction: (callback?: Callback) => query("START TRANSACTION", callback),
    commit: (callback?: Callback) => query("COMMIT", callback),
    rollback: (callback?: Callback) => query("ROLLBACK", callback),
    prepare: (options: unknown, callback?: (error: unknown, statement?: PreparedStatement) => void) =>
      connection.prepare(options, (error, statement) =>
        callback?.(error, statement && prepared(watched, statement)),
      ),
    promise: (implementation?: unknown) => promisesOver(connection.promise(implementation), wrapped),
  });
  return wrapped;
}

function run(watched: WatchedConnection, method: StatementCall["method"], args: readonly unknown[]): unknown {
  const { connection, tracked } = watched;
  const call = statementCall(method, args);
  if (call === undefined) return connection[method](...(args as [unknown]));
  const { options, callback } = call;
  if (callback === undefined) return emit(watched, call);
  // What the library returns besides calling back: an emitter of events.
  const command = commandOf(connection, options, undefined, callback);
  callBack(tracked.run(statementOf(watched, call)), callback, command);
  return command;
}

/** A statement without a callback, whose rows are events or a stream. */
function emit(watched: WatchedConnection, call: StatementCall): Command {
  const { connection, tracked } = watched;
  if (call.method === "execute") return connection.execute(call.options);
  const command = commandOf(connection, call.options, undefined);
  endAfter(command, tracked.run(emission(watched, call, command)));
  return command;
}

/** Sends a command. Its `end` is held back: a listener must not find in the cache what the statement has changed. */
export function emission(
  { connection, driver }: WatchedConnection,
  call: StatementCall,
  command: Command,
): SessionStatement<unknown> {
  const execute = () =>
    driver.send((done) => {
      const { emit } = command;
      command.emit = (event, ...args) => {
        if (event === "end") done(undefined);
        else if (event === "error") done(args[0]);
        return event === "end" || emit.call(command, event, ...args);
      };
      connection.query(command);
    });
  return { text: textOf(connection, driver, call), execute };
}

export function endAfter(command: Command, running: Promise<unknown>): void {
  const { emit } = command;
  const end = (): void => {
    emit.call(command, "end");
  };
  // A command reports its failure to its owner itself.
  running.then(end, end);
}

/** The text as it is sent. undefined: what it means depends on a mode of the server. */
export function textOf(
  connection: MysqlConnection,
  driver: MysqlDriver,
  { method, options }: StatementCall,
): string | undefined {
  if (driver.isWithoutEscapes) return undefined;
  const { sql, values, namedPlaceholders } = options;
  return method === "execute" ? sql : connection.format(sql, values ?? [], namedPlaceholders);
}

/** The two ways to send a statement have results of their own. */
export function valuesOf({ method, options }: StatementCall): readonly unknown[] {
  return method === "query" ? [method] : [method, options.values];
}

export function statementOf(
  { connection, driver }: WatchedConnection,
  call: StatementCall,
): SessionStatement<Answer> {
  const { method, options } = call;
  const send = async (): Promise<Answer> => {
    const [rows, fields] = await driver.send((done) =>
      connection[method](options, undefined, done as Callback),
    );
    return { rows, fields };
  };
  return {
    text: textOf(connection, driver, call),
    values: valuesOf(call),
    execute: send,
    cacheable: {
      fetch: async () => {
        const { result, packets } = driver.recording(send);
        await result;
        return keptResult(connection, packets);
      },
      restore: (data) => restoreKept(data, { classes: driver.classes, config: connection.config }, call),
    },
  };
}

/** A prepared statement, whose executions are not cached. */
function prepared({ driver, tracked }: WatchedConnection, statement: PreparedStatement): PreparedStatement {
  return proxyOf(statement, {
    execute(given?: unknown, last?: Callback) {
      const callback = typeof given === "function" ? (given as Callback) : last;
      const values = typeof given === "function" ? [] : given;
      if (callback === undefined) return statement.execute(values);
      const execute = async (): Promise<Answer> => {
        const [rows, fields] = await driver.send((done) => statement.execute(values, done as Callback));
        return { rows, fields };
      };
      callBack(tracked.run({ text: statement.query, execute }), callback);
      return undefined;
    },
  });
}

/** Called outside any promise, so an exception in the callback is uncaught, as with mysql2 itself. */
export function callBack(result: Promise<Answer>, callback: Callback, command?: Command): void {
  result.then(
    ({ rows, fields }) =>
      process.nextTick(() => {
        command?.emit("end");
        callback(null, rows, fields);
      }),
    (error: unknown) =>
      process.nextTick(() => {
        callback(error);
        command?.emit("end");
      }),
  );
}
