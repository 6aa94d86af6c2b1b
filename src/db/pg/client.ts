// A node-postgres client whose queries are watched.
import type { SessionStatement, SessionTracker, TrackedConnection } from "../../core/db-session.ts";
import { proxyOf } from "../tracking/proxy.ts";
import { PgDriver } from "./driver.ts";
import { fetchKept, isKeepable, restoreKept, resultMaker } from "./kept-result.ts";
import {
  type Callback,
  isSubmittable,
  type PgClient,
  type QueryCall,
  type QueryResult,
  queryCall,
  refuseNative,
  type Submittable,
} from "./library.ts";

export interface WatchedClient {
  readonly client: PgClient;
  readonly driver: PgDriver;
  readonly connection: TrackedConnection;
}

const drivers = new WeakMap<PgClient, PgDriver>();

/** Call it whenever a client is handed out. Throws ConfigError for one of pg-native. */
export function watchClient(client: PgClient, tracker: SessionTracker): WatchedClient {
  let driver = drivers.get(client);
  const connection = tracker.connection(client, () => {
    refuseNative(client.constructor);
    const made = new PgDriver(client, () => connection.settingsChanged());
    drivers.set(client, made);
    driver = made;
    return made;
  });
  return { client, driver: driver!, connection };
}

export function wrapClient(watched: WatchedClient): PgClient {
  const { client } = watched;
  const wrapped: PgClient = proxyOf(client, {
    query: (...args: unknown[]) => query(watched, args),
    connect: (callback?: Callback) =>
      callback === undefined
        ? client.connect()?.then((connected) => (connected === client ? wrapped : connected))
        : client.connect((error, connected) => callback(error, connected === client ? wrapped : connected)),
  });
  return wrapped;
}

function query(watched: WatchedClient, args: readonly unknown[]): unknown {
  const [first, ...others] = args;
  if (isSubmittable(first)) return submit(watched, first, others);
  const call = queryCall(args);
  if (call === undefined) return watched.client.query(first, ...others);
  const result = watched.connection.run(statementOf(watched, call));
  return call.callback === undefined ? result : callBack(result, call.callback, null);
}

export function submit(
  watched: WatchedClient,
  submittable: Submittable,
  others: readonly unknown[],
): Submittable {
  // A submittable reports its failure to its owner itself.
  const running = watched.connection.run(submission(watched, submittable, others)).catch(() => {});
  endAfter(submittable, running);
  return submittable;
}

/** Its last rows and its end are held back: a reader must not find in the cache what it has changed. */
function endAfter(submittable: Submittable, running: Promise<unknown>): void {
  const { handleReadyForQuery: ready } = submittable;
  submittable.handleReadyForQuery = (connection) => {
    // Outside any promise: an exception in a listener is uncaught, as with node-postgres itself.
    const proceed = () => process.nextTick(() => ready?.call(submittable, connection));
    running.then(proceed, proceed);
  };
  const cursor = submittable.cursor ?? submittable;
  const { close } = cursor;
  if (typeof close !== "function") return;
  cursor.close = (callback) => {
    const closed = new Promise<void>((resolve, reject) => {
      close.call(cursor, (error) => running.then(() => (error ? reject(error) : resolve())));
    });
    if (callback === undefined) return closed;
    closed.then(() => callback(), callback);
    return undefined;
  };
}

export function statementOf({ client }: WatchedClient, call: QueryCall): SessionStatement<unknown> {
  const { config, sent } = call;
  const maker = isKeepable(config) ? resultMaker(client) : undefined;
  return {
    text: config.text,
    values: config.values,
    execute: async () => client.query(...(sent as [unknown, unknown])),
    commands: commandsOf,
    cacheable: maker && {
      fetch: () => fetchKept(client, config),
      restore: (data) => restoreKept(data, maker, config),
    },
  };
}

/** Finished once the server is ready for the next query: a cursor takes as long as its reader. */
function submission(
  { client, driver }: WatchedClient,
  submittable: Submittable,
  others: readonly unknown[],
): SessionStatement<void> {
  const text = submittable.text ?? submittable.cursor?.text;
  return {
    text: typeof text === "string" ? text : undefined,
    execute: async () => {
      client.query(submittable, ...others);
      if (!(await driver.answered())) throw new Error("the connection was lost during a query");
    },
  };
}

function commandsOf(result: unknown): readonly string[] {
  const results = (Array.isArray(result) ? result : [result]) as readonly (QueryResult | undefined)[];
  return results.map((each) => each?.command ?? "");
}

/** Called outside any promise, so an exception in the callback is uncaught, as with node-postgres itself. */
export function callBack(result: Promise<unknown>, callback: Callback, noError: null | undefined): undefined {
  result.then(
    (value) => process.nextTick(callback, noError, value),
    (error: unknown) => process.nextTick(callback, error),
  );
  return undefined;
}
