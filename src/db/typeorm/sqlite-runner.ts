// A typeorm query runner over SQLite whose queries are watched.
import type { BypassListener, SessionTracker, TrackedConnection } from "../../core/db-session.ts";
import { snapshot } from "../../core/snapshot.ts";
import { type Bypass, bypassOf } from "../tracking/bypass.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { OpenRunner, QueryRunner, SqliteHandle } from "./library.ts";

/** A structured result, as the library uses internally. */
interface Structured {
  readonly raw: unknown;
}

/** Cached rows, or the library's own result. */
type Outcome = { readonly rows: unknown[] } | { readonly result: unknown };

const tracked = new WeakMap<SessionTracker, WeakMap<SqliteHandle, TrackedConnection>>();

export function watchedSqliteRunner(runner: QueryRunner, tracker: SessionTracker): QueryRunner {
  const open = runner as unknown as OpenRunner;
  const send = async (...args: Parameters<OpenRunner["query"]>): Promise<unknown> => {
    const bypass = bypassOf((await open.connect()) as unknown as SqliteHandle);
    bypass.watch(open, "query", (text) => text);
    return bypass.own(() => open.query(...args));
  };
  const query: OpenRunner["query"] = async (text, given = [], isStructured = false) => {
    const values = snapshot(given);
    const connection = connectionOf((await open.connect()) as unknown as SqliteHandle, tracker);
    let fetched: Structured | undefined;
    const outcome = await connection.run<Outcome>({
      text,
      values,
      execute: async () => ({ result: await send(text, values, isStructured) }),
      cacheable: {
        async fetch() {
          fetched = (await send(text, values, true)) as Structured;
          return fetched.raw;
        },
        restore: (rows) => (Array.isArray(rows) ? { rows } : undefined),
      },
    });
    if ("result" in outcome) return outcome.result;
    if (fetched !== undefined) return isStructured ? fetched : fetched.raw;
    return runnerReturning(open, outcome.rows).query(text, values, isStructured);
  };
  return new Proxy(runner, {
    get: (target, property, receiver) =>
      property === "query" ? query : Reflect.get(target, property, receiver),
  });
}

/** A runner whose statement returns these rows, so that the library notifies listeners and shapes the result itself. */
function runnerReturning(runner: OpenRunner, rows: unknown[]): OpenRunner {
  const getStmt = async (): Promise<unknown> => ({ reader: true, all: () => rows });
  return Object.create(runner, { getStmt: { value: getStmt } }) as OpenRunner;
}

function connectionOf(handle: SqliteHandle, tracker: SessionTracker): TrackedConnection {
  const ofTracker = tracked.get(tracker) ?? new WeakMap<SqliteHandle, TrackedConnection>();
  tracked.set(tracker, ofTracker);
  const known = ofTracker.get(handle) ?? tracker.connection(handle, () => new HandleDriver(handle));
  ofTracker.set(handle, known);
  return known;
}

class HandleDriver extends SqliteDriver {
  readonly #bypass: Bypass;

  constructor(handle: SqliteHandle) {
    super({
      all: async (text, values) => handle.prepare(text).all(...values),
      inTransaction: () => handle.inTransaction,
    });
    this.#bypass = bypassOf(handle);
  }

  onBypass(listener: BypassListener): void {
    this.#bypass.listen(listener);
  }

  /** The library wraps the driver's error. */
  override isRefusal(error: unknown): boolean {
    const cause =
      typeof error === "object" && error !== null && "driverError" in error ? error.driverError : error;
    return super.isRefusal(cause);
  }
}
