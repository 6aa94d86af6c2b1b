// The callback of drizzle's sqlite-proxy, with its statements watched.
import type { Keeping, SessionTracker } from "../../core/db-session.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { RemoteBatch, RemoteCallback, RemoteSession } from "./library.ts";

type Answer = Awaited<ReturnType<RemoteCallback>>;

export interface WatchedRemote {
  readonly client: RemoteCallback;
  readonly batch: RemoteBatch | undefined;
}

export function watchRemote({ client, batchCLient }: RemoteSession, tracker: SessionTracker): WatchedRemote {
  const connection = tracker.connection(client, () => new RemoteDriver(client));
  return {
    client: (text, values, method) =>
      connection.run({
        text,
        values,
        execute: () => client(text, values, method),
        keeping: keeping(method, () => client(text, values, method)),
      }),
    batch:
      batchCLient &&
      ((queries) =>
        connection.run({
          text: queries.map(({ sql }) => sql).join(";\n"),
          execute: () => batchCLient(queries),
        })),
  };
}

/** The rows look different for each way of asking, so that way is kept along. */
function keeping(method: string, send: () => Promise<Answer>): Keeping<Answer> {
  return {
    fetch: async () => ({ method, answer: await send() }),
    restore(data) {
      const kept = data as { readonly method?: unknown; readonly answer?: Answer } | null;
      return typeof kept === "object" && kept?.method === method ? kept.answer : undefined;
    },
  };
}

/** Between it and the file may be a network. */
class RemoteDriver extends SqliteDriver {
  constructor(client: RemoteCallback) {
    super({ all: async (text, values) => namedRows((await client(text, [...values], "all")).rows) });
  }

  override isRefusal(error: unknown): boolean {
    const hasCode = typeof error === "object" && error !== null && "code" in error;
    return hasCode && String(error.code).startsWith("SQLITE_") && super.isRefusal(error);
  }
}

const COLUMNS = ["fingerprint", "file", "sample", "isolation", "peculiar", "tables"];

/** Answers come as lists of values, in the order of the question. */
function namedRows(rows: unknown): readonly Record<string, unknown>[] {
  return (rows as unknown[]).map((row) =>
    Array.isArray(row)
      ? Object.fromEntries(row.map((value, at) => [COLUMNS[at], value]))
      : (row as Record<string, unknown>),
  );
}
