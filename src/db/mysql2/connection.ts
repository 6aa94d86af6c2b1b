// A connection of mysql2 whose statements are watched.
import type { SessionStatement, SessionTracker, TrackedConnection } from "../../core/db-session.ts";
import { types } from "../../core/lazy-builtin.ts";
import { snapshot } from "../../core/snapshot.ts";
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
  type Unsent,
  withoutSending,
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
  const release = () => afterOthers(watched, () => connection.release?.());
  const wrapped: MysqlConnection = proxyOf(connection, {
    query,
    execute: (...args: unknown[]) => run(watched, "execute", args),
    beginTransaction: (callback?: Callback) => query("START TRANSACTION", callback),
    commit: (callback?: Callback) => query("COMMIT", callback),
    rollback: (callback?: Callback) => query("ROLLBACK", callback),
    prepare: (options: unknown, callback?: Callback) =>
      inTurn(watched, "prepare", [
        options,
        (error: unknown, statement?: PreparedStatement) =>
          callback?.(error, statement && prepared(watched, statement)),
      ]),
    ...Object.fromEntries(
      IN_TURN.map((method) => [method, (...args: unknown[]) => inTurn(watched, method, args)]),
    ),
    // A pool takes the end of one of its connections for its release, and does not call back.
    ...(connection.release && {
      release,
      end: (callback: Callback) => afterOthers(watched, () => connection.end(callback)),
    }),
    promise: (implementation?: unknown) => promisesOver(connection.promise(implementation), wrapped),
  });
  return wrapped;
}

const IN_TURN = ["ping", "reset", "changeUser", "end"] as const;

/** A command that is no statement, sent after the statements before it. */
function inTurn(
  watched: WatchedConnection,
  method: (typeof IN_TURN)[number] | "prepare",
  args: readonly unknown[],
): void {
  const { connection, driver } = watched;
  const callback = args.find((each) => typeof each === "function") as
    | ((...args: unknown[]) => void)
    | undefined;
  const given = args.filter((each) => each !== undefined && each !== callback);
  const execute = () =>
    driver.send((done) => (connection[method] as (...args: unknown[]) => unknown)(...given, done));
  track(watched, { text: "", execute }).then(
    (result) => callback && process.nextTick(callback, null, ...result),
    (error: unknown) => callback && process.nextTick(callback, error),
  );
}

/** What the library does at once, after the statements before it. */
function afterOthers(watched: WatchedConnection, work: () => unknown): unknown {
  if (watched.driver.unfinished === 0) return work();
  return track(watched, { text: "", execute: async () => work() });
}

/** Runs a statement of the connection's user. */
function track<Result>(
  { driver, tracked }: WatchedConnection,
  statement: SessionStatement<Result>,
): Promise<Result> {
  driver.unfinished++;
  return tracked.run(statement).finally(() => {
    driver.unfinished--;
  });
}

function run(watched: WatchedConnection, method: StatementCall["method"], args: readonly unknown[]): unknown {
  const { connection } = watched;
  const call = statementCall(method, args);
  if (call === undefined) return connection[method](...(args as [unknown]));
  const { options, callback } = call;
  if (callback === undefined) return emit(watched, call);
  // What the library returns besides calling back: an emitter of events.
  const command = commandOf(connection, options, undefined, callback);
  callBack(track(watched, statementOf(watched, call)), callback, command);
  return command;
}

/** A statement without a callback, whose rows are events or a stream. */
function emit(watched: WatchedConnection, call: StatementCall): Command {
  const { connection } = watched;
  if (call.method === "execute") {
    const unsent = withoutSending(connection, (idle) => idle.execute(call.options));
    return sendInTurn(watched, textOf(connection, watched.driver, call), unsent);
  }
  const command = commandOf(connection, call.options, undefined);
  endAfter(command, track(watched, emission(watched, call, command)));
  return command;
}

function sendInTurn(
  watched: WatchedConnection,
  text: string | undefined,
  { command, commands }: Unsent,
): Command {
  const send = (): void => {
    for (const each of commands) watched.connection.addCommand(each);
  };
  if (commands.length > 0)
    endAfter(command, track(watched, { text, execute: heldBack(watched, command, send) }));
  return command;
}

/** Sends a command without a callback. */
export function emission(
  watched: WatchedConnection,
  call: StatementCall,
  command: Command,
): SessionStatement<unknown> {
  const { connection, driver } = watched;
  const send = () => connection.query(command);
  return { text: textOf(connection, driver, call), execute: heldBack(watched, command, send) };
}

/** Holds back the `end` of a command: a listener must not find in the cache what the statement has changed. */
function heldBack(
  { driver }: WatchedConnection,
  command: Command,
  send: () => unknown,
): () => Promise<unknown> {
  return () =>
    driver.send((done) => {
      const { emit } = command;
      command.emit = (event, ...args) => {
        if (event === "end") done(undefined);
        else if (event === "error") done(args[0]);
        return event === "end" || emit.call(command, event, ...args);
      };
      send();
    });
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

/** The two ways to send a statement have results of their own. A date is sent in the time zone of its connection. */
export function valuesOf(
  connection: MysqlConnection,
  { method, options: { values } }: StatementCall,
): readonly unknown[] {
  if (method === "query") return [method];
  const given: unknown[] = typeof values === "object" && values !== null ? Object.values(values) : [];
  const dates = given.filter((value) => types.isDate(value));
  // Those of placeholders are first, in their order.
  const sent = Array.isArray(values) ? [...given, method] : [method, values];
  return [...sent, ...dates.map((date) => connection.format("?", [date]))];
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
    values: valuesOf(connection, call),
    execute: send,
    cacheable: {
      fetch: async () => {
        const { result, packets } = driver.recording(send);
        const { rows } = await result;
        return keptResult(connection, packets, rows);
      },
      restore: (data) => restoreKept(data, { classes: driver.classes, config: connection.config }, call),
    },
  };
}

/** A prepared statement, whose executions are not cached. */
function prepared(watched: WatchedConnection, statement: PreparedStatement): PreparedStatement {
  const { driver } = watched;
  return proxyOf(statement, {
    close: () => afterOthers(watched, () => statement.close()),
    execute(given?: unknown, last?: Callback) {
      const callback = typeof given === "function" ? (given as Callback) : last;
      const values = typeof given === "function" ? [] : snapshot(given);
      if (callback === undefined) {
        const unsent = withoutSending(watched.connection, (idle) =>
          statement.execute.call(Object.create(statement, { _connection: { value: idle } }), values),
        );
        return sendInTurn(watched, statement.query, unsent);
      }
      const execute = async (): Promise<Answer> => {
        const [rows, fields] = await driver.send((done) => statement.execute(values, done as Callback));
        return { rows, fields };
      };
      callBack(track(watched, { text: statement.query, execute }), callback);
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
