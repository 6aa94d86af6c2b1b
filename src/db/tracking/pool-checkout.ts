// A lazy checkout: takes a connection from the pool when a statement first needs one, and keeps it until release.
import type {
  AcquiredConnection,
  PooledStatement,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";

export interface ConnectionSource<Connection extends object> {
  /** Identifies the pool: what is learnt about its connections is stored under this object. */
  readonly pool: object;
  take(): Promise<Connection>;
  giveBack(connection: Connection, error: unknown): void;
  track(connection: Connection): TrackedConnection;
  /**
   * Whether an error means that the connection is lost. If set, a lost connection is given back at once, as the library
   * would do: a lost client without a listener for its error event would end the process.
   */
  isLost?(error: unknown): boolean;
}

const COMMIT = /^\s*(commit|end)\b/i;

export class PoolCheckout<Connection extends object> {
  readonly #tracker: SessionTracker;
  readonly #source: ConnectionSource<Connection>;
  #taken: Promise<Connection> | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #uses = 0;
  #isReleased = false;
  #error: unknown;

  constructor(tracker: SessionTracker, source: ConnectionSource<Connection>) {
    this.#tracker = tracker;
    this.#source = source;
  }

  /** Runs statements in order. `over`: the statement as sent over the connection that was taken. */
  run<Result>(
    statement: PooledStatement<Result>,
    over: (connection: Connection) => SessionStatement<Result>,
  ): Promise<Result> {
    this.#uses++;
    const result = this.#tail.then(() => this.#run(statement, over));
    this.#tail = result.then(this.#used, this.#used);
    return result;
  }

  /** Takes the connection now. */
  take(): Promise<Connection> {
    this.#taken ??= this.#source.take().catch((error: unknown) => {
      this.#taken = undefined;
      throw error;
    });
    return this.#taken;
  }

  /** Gives the connection back once it is idle: a load may outlast the caller that started it. */
  release(error?: unknown): void {
    this.#isReleased = true;
    this.#error = error;
    this.#giveBack();
  }

  async #run<Result>(
    statement: PooledStatement<Result>,
    over: (connection: Connection) => SessionStatement<Result>,
  ): Promise<Result> {
    if (this.#taken === undefined) {
      return this.#tracker.pooled(this.#source.pool, statement, () => this.#acquire(over));
    }
    const connection = await this.#taken;
    const sent = over(connection);
    // A failed commit ends the transaction, so a lost connection can be given back then too.
    const isLast = COMMIT.test(statement.text ?? "");
    return this.#source.track(connection).run(isLast ? this.#guarded(sent, connection) : sent);
  }

  async #acquire<Result>(
    over: (connection: Connection) => SessionStatement<Result>,
  ): Promise<AcquiredConnection<Result>> {
    this.#uses++;
    try {
      const connection = await this.take();
      return {
        connection: this.#source.track(connection),
        statement: this.#guarded(over(connection), connection),
        release: this.#used,
      };
    } catch (error) {
      this.#used();
      throw error;
    }
  }

  /** Gives a lost connection back. Only for statements after which no open transaction depends on it. */
  #guarded<Result>(statement: SessionStatement<Result>, connection: Connection): SessionStatement<Result> {
    const { isLost } = this.#source;
    if (isLost === undefined) return statement;
    const watch = async <T>(sending: Promise<T>): Promise<T> => {
      try {
        return await sending;
      } catch (error) {
        if (isLost(error) && this.#taken !== undefined) {
          this.#taken = undefined;
          this.#source.giveBack(connection, error);
        }
        throw error;
      }
    };
    const { cacheable: keeping } = statement;
    return {
      ...statement,
      execute: () => watch(statement.execute()),
      cacheable: keeping && { ...keeping, fetch: () => watch(keeping.fetch()) },
    };
  }

  readonly #used = (): void => {
    this.#uses--;
    this.#giveBack();
  };

  #giveBack(): void {
    if (!this.#isReleased || this.#uses > 0 || this.#taken === undefined) return;
    const taken = this.#taken;
    this.#taken = undefined;
    taken.then(
      (connection) => this.#source.giveBack(connection, this.#error),
      () => {},
    );
  }
}
