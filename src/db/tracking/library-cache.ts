// For libraries that look a read up in their cache option first: only those reads are cached, with the options given there.
import type {
  PooledStatement,
  SessionStatement,
  SessionTracker,
  StatementOptions,
  TrackedConnection,
} from "../../core/db-session.ts";
import { AsyncLocalStorage } from "../../core/lazy-builtin.ts";

interface Mark {
  options: StatementOptions | undefined;
  readonly isFor: (text: string | undefined) => boolean;
}

export class LibraryCache {
  /** The cache lookup and the statement share an async context: a mark is for the next statement in it. */
  readonly #context = new AsyncLocalStorage<Mark>();

  /**
   * Call and await it in the async context that is about to send a read. The caller of that code may start another read in
   * the same context at once, so the mark takes effect only when awaited, and only for a statement that `isFor` accepts.
   */
  mark(options: StatementOptions, isFor: Mark["isFor"] = () => true): Promise<undefined> {
    const mark: Mark = { options: undefined, isFor };
    this.#context.enterWith(mark);
    queueMicrotask(() => {
      mark.options = options;
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
        const options = this.#take(statement.text);
        return tracker.pooled(pool, pooledStatement(statement, options), async () => {
          const acquired = await acquire();
          return {
            ...acquired,
            connection: inner.get(acquired.connection) ?? acquired.connection,
            statement: ownStatement(acquired.statement, options),
          };
        });
      },
    };
  }

  #take(text: string | undefined): StatementOptions | undefined {
    const mark = this.#context.getStore();
    if (mark?.options === undefined || !mark.isFor(text)) return undefined;
    const { options } = mark;
    mark.options = undefined;
    return options;
  }
}

function ownStatement<Result>(
  statement: SessionStatement<Result>,
  options: StatementOptions | undefined,
): SessionStatement<Result> {
  return options === undefined ? { ...statement, cacheable: undefined } : { ...statement, options };
}

function pooledStatement<Result>(
  statement: PooledStatement<Result>,
  options: StatementOptions | undefined,
): PooledStatement<Result> {
  return options === undefined ? { ...statement, restore: undefined } : { ...statement, options };
}
