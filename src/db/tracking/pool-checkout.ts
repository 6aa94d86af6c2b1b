// A connection of a pool that is taken when a statement needs one, not before, and kept until it is given back.
import type {
  AcquiredConnection,
  PooledStatement,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";

export interface ConnectionSource<Connection extends object> {
  /** Stands for the pool: what is learnt of its connections is kept under it. */
  readonly pool: object;
  take(): Promise<Connection>;
  giveBack(connection: Connection, error: unknown): void;
  track(connection: Connection): TrackedConnection;
  /**
   * Whether an error means that the connection is lost. Where it is given, such a connection is given back at once, as
   * the library would: nobody else listens to what a lost client emits, which would end the process.
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
  #isOver = false;
  #error: unknown;

  constructor(tracker: SessionTracker, source: ConnectionSource<Connection>) {
    this.#tracker = tracker;
    this.#source = source;
  }

  /** In order, as on a connection. `over`: the statement as it is sent over the one that is taken. */
  run<Result>(
    statement: PooledStatement<Result>,
    over: (connection: Connection) => SessionStatement<Result>,
  ): Promise<Result> {
    this.#uses++;
    const result = this.#tail.then(() => this.#run(statement, over));
    this.#tail = result.then(this.#used, this.#used);
    return result;
  }

  /** The connection itself, from now on. */
  take(): Promise<Connection> {
    this.#taken ??= this.#source.take().catch((error: unknown) => {
      this.#taken = undefined;
      throw error;
    });
    return this.#taken;
  }

  /** Given back once nothing is under way: a load may outlast whoever began it. */
  release(error?: unknown): void {
    this.#isOver = true;
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
    // After a commit of unknown outcome nothing more can be done in its transaction.
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

  /** Only where nothing was done before that the next statement would rely on. */
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
    const { keeping } = statement;
    return {
      ...statement,
      execute: () => watch(statement.execute()),
      keeping: keeping && { ...keeping, fetch: () => watch(keeping.fetch()) },
    };
  }

  readonly #used = (): void => {
    this.#uses--;
    this.#giveBack();
  };

  #giveBack(): void {
    if (!this.#isOver || this.#uses > 0 || this.#taken === undefined) return;
    const taken = this.#taken;
    this.#taken = undefined;
    taken.then(
      (connection) => this.#source.giveBack(connection, this.#error),
      () => {},
    );
  }
}
