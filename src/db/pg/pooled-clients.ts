// The clients of any library's pool: taken for a statement, watched, and given back.
import type { PooledStatement, SessionStatement, SessionTracker } from "../../core/db-session.ts";
import type { ConnectionSource } from "../tracking/pool-checkout.ts";
import { statementOf, type WatchedClient, watchClient } from "./client.ts";
import { isKeepable, type ResultMaker, restoreKept, resultMaker } from "./kept-result.ts";
import type { PgClient, QueryCall } from "./library.ts";

/** Where clients come from. */
export interface ClientSource {
  readonly pool: object;
  take(): Promise<PgClient>;
  giveBack(client: PgClient, error: unknown): void;
}

export class PooledClients implements ConnectionSource<WatchedClient> {
  readonly #source: ClientSource;
  readonly #tracker: SessionTracker;
  /** That of the latest client, because parsers may be set when a client connects. */
  #maker: ResultMaker | undefined;

  constructor(source: ClientSource, tracker: SessionTracker) {
    this.#source = source;
    this.#tracker = tracker;
  }

  get pool(): object {
    return this.#source.pool;
  }

  async take(): Promise<WatchedClient> {
    const client = await this.#source.take();
    this.#maker = resultMaker(client);
    // Without an error listener a lost connection would end the process; the query rejects with the error anyway.
    client.on("error", ignore);
    return watchClient(client, this.#tracker);
  }

  giveBack({ client }: WatchedClient, error: unknown): void {
    client.removeListener("error", ignore);
    this.#source.giveBack(client, error);
  }

  track({ connection }: WatchedClient): WatchedClient["connection"] {
    return connection;
  }

  statement({ config }: QueryCall): PooledStatement<unknown> {
    const known = isKeepable(config) ? this.#maker : undefined;
    return {
      text: config.text,
      values: config.values,
      restore: known && ((data) => restoreKept(data, known, config)),
    };
  }

  /** Runs a statement on any client of the pool. */
  run<Result>(
    statement: PooledStatement<Result>,
    over: (watched: WatchedClient) => SessionStatement<Result>,
  ): Promise<Result> {
    return this.#tracker.pooled(this.pool, statement, async () => {
      const watched = await this.take();
      return {
        connection: watched.connection,
        statement: over(watched),
        release: (error) => this.giveBack(watched, error),
      };
    });
  }

  query(call: QueryCall): Promise<unknown> {
    return this.run(this.statement(call), (watched) => statementOf(watched, call));
  }
}

function ignore(): void {}
