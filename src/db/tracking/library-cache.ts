// Reads that a library asks a cache about beforehand: only those are cached, under the terms that were named.
import { AsyncLocalStorage } from "node:async_hooks";
import type {
  PooledStatement,
  SessionStatement,
  SessionTracker,
  StatementTerms,
  TrackedConnection,
} from "../../core/db-session.ts";

interface Mark {
  terms: StatementTerms | undefined;
  readonly isFor: (text: string | undefined) => boolean;
}

export class LibraryCache {
  /** Both calls come from one flow: the mark is for the next statement of it. */
  readonly #flow = new AsyncLocalStorage<Mark>();

  /**
   * To be called, and awaited, in the flow of calls that is about to send a read. Whoever began that flow may go on at
   * once with another read, within the same flow: so the mark counts only when it is awaited, and for the text it is for.
   */
  mark(terms: StatementTerms, isFor: Mark["isFor"] = () => true): Promise<undefined> {
    const mark: Mark = { terms: undefined, isFor };
    this.#flow.enterWith(mark);
    queueMicrotask(() => {
      mark.terms = terms;
    });
    return Promise.resolve(undefined);
  }

  /** A tracker that caches marked reads and no others. */
  tracker(tracker: SessionTracker): SessionTracker {
    const inner = new WeakMap<TrackedConnection, TrackedConnection>();
    return {
      connection: (connection, driver) => {
        const tracked = tracker.connection(connection, driver);
        const marked: TrackedConnection = {
          run: (statement) => tracked.run(ownStatement(statement, this.#take(statement.text))),
          settingsChanged: () => tracked.settingsChanged(),
        };
        inner.set(marked, tracked);
        return marked;
      },
      pooled: (pool, statement, acquire) => {
        const terms = this.#take(statement.text);
        return tracker.pooled(pool, pooledStatement(statement, terms), async () => {
          const acquired = await acquire();
          return {
            ...acquired,
            connection: inner.get(acquired.connection) ?? acquired.connection,
            statement: ownStatement(acquired.statement, terms),
          };
        });
      },
    };
  }

  #take(text: string | undefined): StatementTerms | undefined {
    const mark = this.#flow.getStore();
    if (mark?.terms === undefined || !mark.isFor(text)) return undefined;
    const { terms } = mark;
    mark.terms = undefined;
    return terms;
  }
}

function ownStatement<Result>(
  statement: SessionStatement<Result>,
  terms: StatementTerms | undefined,
): SessionStatement<Result> {
  return terms === undefined ? { ...statement, keeping: undefined } : { ...statement, terms };
}

function pooledStatement<Result>(
  statement: PooledStatement<Result>,
  terms: StatementTerms | undefined,
): PooledStatement<Result> {
  return terms === undefined ? { ...statement, restore: undefined } : { ...statement, terms };
}
