// Watches the callback of drizzle's sqlite-proxy.
import type { BypassListener, CacheableResult, SessionTracker } from "../../core/db-session.ts";
import { snapshot } from "../../core/snapshot.ts";
import { type Bypass, bypassOf } from "../tracking/bypass.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { RemoteBatch, RemoteCallback, RemoteSession } from "./library.ts";

type Answer = Awaited<ReturnType<RemoteCallback>>;

export interface WatchedRemote {
  readonly client: RemoteCallback;
  readonly batch: RemoteBatch | undefined;
}

export function watchRemote(
  session: RemoteSession,
  tracker: SessionTracker,
  isTransaction: boolean,
): WatchedRemote {
  const { batchCLient } = session;
  const { client, bypass } = originalOf(session);
  const connection = tracker.connection(client, () => new RemoteDriver(client, bypass, isTransaction));
  return {
    client: (text, given, method) => {
      const values = snapshot(given);
      return connection.run({
        text,
        values,
        execute: () => client(text, values, method),
        cacheable: keeping(method, () => client(text, values, method)),
      });
    },
    batch:
      batchCLient &&
      ((queries) =>
        connection.run({
          // On a line of its own, where a comment at the end of a statement does not hide it.
          text: queries.map(({ sql }) => sql).join("\n;\n"),
          execute: () => batchCLient(queries),
        })),
  };
}

interface Original {
  readonly client: RemoteCallback;
  readonly bypass: Bypass;
}

/** By the callback that has taken its place in a session. */
const originals = new WeakMap<RemoteCallback, RemoteCallback>();

/** The callback as the application gave it. The session's own statements, such as the end of a transaction, are watched. */
function originalOf(session: RemoteSession): Original {
  const client = originals.get(session.client) ?? session.client;
  const bypass = bypassOf(client);
  session.client = bypass.watched(client, (text) => text);
  originals.set(session.client, client);
  return { client, bypass };
}

/** The shape of the rows depends on the method, so the method is stored with them. */
function keeping(method: string, send: () => Promise<Answer>): CacheableResult<Answer> {
  return {
    fetch: async () => ({ method, answer: await send() }),
    restore(data) {
      const kept = data as { readonly method?: unknown; readonly answer?: Answer } | null;
      return typeof kept === "object" && kept?.method === method ? kept.answer : undefined;
    },
  };
}

/** There may be a network between the callback and the file: only an error with a SQLite code is a refusal. */
class RemoteDriver extends SqliteDriver {
  readonly hasTransaction: boolean;
  readonly #bypass: Bypass;

  constructor(client: RemoteCallback, bypass: Bypass, hasTransaction: boolean) {
    super({ all: async (text, values) => namedRows((await client(text, [...values], "all")).rows) });
    this.#bypass = bypass;
    this.hasTransaction = hasTransaction;
  }

  onBypass(listener: BypassListener): void {
    this.#bypass.listen(listener);
  }

  override isRefusal(error: unknown): boolean {
    const hasCode = typeof error === "object" && error !== null && "code" in error;
    return hasCode && String(error.code).startsWith("SQLITE_") && super.isRefusal(error);
  }
}

const COLUMNS = ["fingerprint", "file", "sample", "isolation", "unshareable", "tables", "functions", "stamp"];

/** The callback returns arrays of values, in the order of the columns queried. */
function namedRows(rows: unknown): readonly Record<string, unknown>[] {
  return (rows as unknown[]).map((row) =>
    Array.isArray(row)
      ? Object.fromEntries(row.map((value, at) => [COLUMNS[at], value]))
      : (row as Record<string, unknown>),
  );
}
