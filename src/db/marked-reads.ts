// Reads that a library asks a cache about beforehand: only those are cached, under the terms that were named.
import { AsyncLocalStorage } from "node:async_hooks";
import type {
  PooledStatement,
  SessionStatement,
  SessionTracker,
  StatementTerms,
  TrackedConnection,
} from "../core/session.ts";

export class MarkedReads {
  /** Both calls come from one flow: the mark is for the next statement of it. */
  readonly #flow = new AsyncLocalStorage<{ terms: StatementTerms | undefined }>();

  /** To be called in the flow of calls that is about to send a read. */
  mark(terms: StatementTerms): void {
    this.#flow.enterWith({ terms });
  }

  /** A tracker that caches marked reads and no others. */
  tracker(tracker: SessionTracker): SessionTracker {
    const inner = new WeakMap<TrackedConnection, TrackedConnection>();
    return {
      connection: (connection, driver) => {
        const tracked = tracker.connection(connection, driver);
        const marked: TrackedConnection = {
          run: (statement) => tracked.run(ownStatement(statement, this.#take())),
          settingsChanged: () => tracked.settingsChanged(),
        };
        inner.set(marked, tracked);
        return marked;
      },
      pooled: (pool, statement, acquire) => {
        const terms = this.#take();
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

  #take(): StatementTerms | undefined {
    const flow = this.#flow.getStore();
    const terms = flow?.terms;
    if (flow !== undefined) flow.terms = undefined;
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
