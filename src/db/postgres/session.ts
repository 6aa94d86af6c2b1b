// `sql` of postgres.js, a transaction of it or a reserved connection, whose queries are watched.
import type { Writable } from "node:stream";
import type {
  PooledStatement,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";
import { PostgresJsDriver, send, settleWith } from "./driver.ts";
import { isKeepable, keptResult, type ResultMaker, restoreKept } from "./kept-result.ts";
import {
  built,
  type Connection,
  freeze,
  type Handler,
  isQuery,
  type Query,
  type Result,
  type Sql,
} from "./library.ts";

/** What belongs to one `sql` and its transactions. */
interface Place {
  readonly tracker: SessionTracker;
  /** undefined: a transaction or a reserved connection was handed out without the `sql` that it is of. */
  readonly maker: ResultMaker | undefined;
}

/** Sends a query that its user awaits. `handler`: the library's own way to send it. */
type Run = (query: Query, handler: Handler) => Promise<unknown>;

export function wrapSql(sql: Sql, tracker: SessionTracker): Sql {
  const { options } = sql;
  const place: Place = { tracker, maker: options && { options } };
  if (options !== undefined && options.max !== 1) return wrapPool(sql, place);
  const isGiven = options === undefined;
  const watched = connectionOf(sql, place, isGiven);
  if (options !== undefined) {
    const { onclose } = options;
    // The library connects again, and what was set is gone.
    options.onclose = (id) => {
      watched.connection.settingsChanged();
      onclose?.(id);
    };
  }
  return wrapConnection(sql, place, watched, isGiven);
}

function wrapPool(sql: Sql, place: Place): Sql {
  let isEnded = false;
  const run: Run = (query, handler) => {
    const call = callOf(query, place);
    // The library refuses it, unless there is but one connection; after its end it refuses everything.
    if (isEnded || query.onlyDescribe || /^\s*(begin|start)\b/i.test(call.text ?? ""))
      return send(query, handler);
    return place.tracker.pooled(sql, call, async () => {
      const reserved = await (sql.reserve as NonNullable<Sql["reserve"]>)();
      const { connection } = connectionOf(reserved, place);
      return {
        connection,
        statement: statementOf(query, call, reserved.unsafe("").handler, place),
        // The library has taken a lost connection away itself.
        release: (error) => isLost(error) || reserved.release?.(),
      };
    });
  };
  const end = (given?: unknown) => {
    isEnded = true;
    return sql.end?.(given);
  };
  return wrapped(sql, run, { begin: beginOf(sql, place), reserve: reserveOf(sql, place), end });
}

interface Watched {
  readonly connection: TrackedConnection;
  readonly driver: PostgresJsDriver;
}

const drivers = new WeakMap<Sql, PostgresJsDriver>();

function connectionOf(sql: Sql, { tracker, maker }: Place, hasTransaction = false): Watched {
  const driver = drivers.get(sql) ?? new PostgresJsDriver(sql, maker, hasTransaction);
  drivers.set(sql, driver);
  return { connection: tracker.connection(sql, () => driver), driver };
}

/** `isGiven`: others may use it too, and end its transaction. */
function wrapConnection(sql: Sql, place: Place, { connection, driver }: Watched, isGiven: boolean): Sql {
  let watching: Promise<unknown> | undefined;
  const watch = async (): Promise<void> => {
    // The library shows a connection only to a query that says so.
    const onexecute = (found: Connection) => {
      driver.watch(found);
      return true;
    };
    const query = sql.unsafe("", [], { simple: true, onexecute });
    await send(query, query.handler);
  };
  const run: Run = async (query, handler) => {
    if (query.onlyDescribe) return send(query, handler);
    if (isGiven) watching ??= watch();
    await watching;
    const call = callOf(query, place);
    return connection.run(statementOf(query, call, handler, place));
  };
  let savepoints = 0;
  const savepoint = async (...args: unknown[]): Promise<unknown> => {
    const work = args.at(-1) as Work;
    const [first] = args as [{ readonly raw?: unknown } | undefined];
    if (typeof work !== "function" || Array.isArray(first?.raw)) {
      return savepoint((inner: Sql) => (inner as (...args: unknown[]) => unknown)(...args));
    }
    const name = `inner_${savepoints++}`;
    await note(connection, `SAVEPOINT ${name}`);
    try {
      const given = args.length > 1 ? String(args[0] ?? "") : "";
      return await sql.savepoint?.(given, (inner) =>
        results(work(wrapConnection(inner, place, { connection, driver }, false))),
      );
    } catch (error) {
      await note(connection, `ROLLBACK TO ${name}`);
      throw error;
    }
  };
  return wrapped(sql, run, {
    ...(sql.begin && { begin: beginOf(sql, place) }),
    ...(sql.reserve && { reserve: reserveOf(sql, place) }),
    ...(sql.savepoint && { savepoint }),
  });
}

type Work = (sql: Sql) => unknown;

/** A callback of the library may return a list of queries. */
const results = async (given: unknown): Promise<unknown> =>
  Array.isArray(given) ? Promise.all(given) : given;

/** Records what the library has done by itself. */
const note = (connection: TrackedConnection, text: string, done: Promise<unknown> = Promise.resolve()) =>
  connection.run({ text, execute: () => done, commands: () => [text] });

/** At other levels a question could take the snapshot of the transaction. */
const HAS_SNAPSHOT = /repeatable|serializable/i;

function beginOf(sql: Sql, place: Place) {
  return async (...args: unknown[]): Promise<unknown> => {
    const work = args.at(-1) as Work;
    const options = typeof args[0] === "string" ? args[0] : "";
    let ending: Promise<unknown> | undefined;
    const begin = sql.begin as NonNullable<Sql["begin"]>;
    const outcome = begin(options, async (transaction) => {
      const watched = connectionOf(transaction, place, HAS_SNAPSHOT.test(options));
      const { connection, driver } = watched;
      // Afterwards, questions are for any other connection.
      const over = outcome.finally(() => {
        driver.sql = sql;
      });
      if (!driver.hasTransaction) await note(connection, "BEGIN");
      try {
        const result = await results(work(wrapConnection(transaction, place, watched, false)));
        // Also what nobody waits for is sent before the commit.
        await note(connection, "");
        ending = note(connection, "COMMIT", over);
        return result;
      } catch (error) {
        ending = note(
          connection,
          "ROLLBACK",
          over.catch(() => {}),
        );
        throw error;
      } finally {
        ending?.catch(() => {});
      }
    });
    try {
      return await outcome;
    } finally {
      await ending?.catch(() => {});
    }
  };
}

function reserveOf(sql: Sql, place: Place) {
  return async (): Promise<Sql> => {
    const reserved = await (sql.reserve as NonNullable<Sql["reserve"]>)();
    return wrapConnection(reserved, place, connectionOf(reserved, place), false);
  };
}

/** The same function, whose queries are sent by `run`. */
function wrapped(sql: Sql, run: Run, members: Partial<Record<keyof Sql, unknown>>): Sql {
  const adopt = (query: Query, prepare = async (): Promise<void> => {}): Query => {
    const { handler } = query;
    const watching: Handler = (each) => {
      freeze(each);
      const running = prepare().then(() => run(each, handler));
      runs.set(each, running);
      settleWith(each, running);
    };
    watching.debug = handler.debug;
    query.handler = watching;
    return query;
  };
  const own: Partial<Record<keyof Sql, unknown>> = {
    ...members,
    unsafe: (...args: Parameters<Sql["unsafe"]>) => adopt(sql.unsafe(...args)),
    file: (path: string, given: unknown = [], more: object = {}) => {
      const [values, options] = Array.isArray(given) ? [given, more] : [[], given as object];
      const simple = { simple: values.length === 0, prepare: true, ...options };
      const query = sql.unsafe("", values, simple);
      return adopt(query, async () => {
        const { readFile } = await import("node:fs/promises");
        query.strings = [await readFile(path, "utf8")];
      });
    },
  };
  return new Proxy(sql, {
    apply(_, __, args) {
      const made: unknown = Reflect.apply(sql, undefined, args);
      return isQuery(made) ? adopt(made) : made;
    },
    get(_, property) {
      if (Object.hasOwn(own, property)) return own[property as keyof Sql];
      return Reflect.get(sql, property, sql);
    },
  });
}

type Call = PooledStatement<unknown>;

function callOf(query: Query, { maker }: Place): Call {
  const made = built(query, maker?.options);
  if (made === undefined || maker === undefined || !isKeepable(query)) return { text: made?.text };
  const { from } = maker.options.transform.column;
  const { text } = made;
  return {
    text,
    // Names of columns are kept as they were renamed.
    values: from === undefined ? made.values : [...made.values, String(from)],
    restore: (data) => restoreKept(data, maker, text),
  };
}

function statementOf(
  query: Query,
  { restore, ...call }: Call,
  handler: Handler,
  { maker }: Place,
): SessionStatement<unknown> {
  const sent = () => send(query, handler);
  const statement = {
    ...call,
    execute: query.streaming ? () => streamed(query, sent()) : sent,
    commands: commandsOf,
  };
  if (restore === undefined || maker === undefined) return statement;
  const fetch = async () => {
    query.isRaw = true;
    return keptResult((await sent()) as Result, maker);
  };
  return { ...statement, cacheable: { fetch, restore } };
}

/** Of queries that are under way. */
const runs = new WeakMap<Query, Promise<unknown>>();

/** COPY resolves to a stream, whose end is that of the statement. */
async function streamed(query: Query, sending: Promise<unknown>): Promise<unknown> {
  const stream = (await sending) as Writable;
  const { _final: final } = stream;
  const ended = new Promise<void>((resolve) => {
    for (const event of ["close", "end"]) stream.once(event, resolve);
    if (typeof final !== "function") return;
    // It finishes when what it has written is invalidated.
    stream._final = (done) =>
      final.call(stream, (error) => {
        const finish = () => done(error);
        runs.get(query)?.then(finish, finish);
        resolve();
      });
  });
  // Its user gets it now.
  settleWith(query, Promise.resolve(stream));
  await ended;
  return stream;
}

function commandsOf(result: unknown): readonly string[] {
  if (!Array.isArray(result)) return [];
  const all = "command" in result ? [result as Result] : (result as Result[]);
  return all.map((each) => each?.command ?? "");
}

function isLost(error: unknown): boolean {
  const { code, errno, severity } = (error ?? {}) as Record<string, unknown>;
  return (
    /^CONNECTION_/.test(String(code)) || errno !== undefined || severity === "FATAL" || severity === "PANIC"
  );
}
