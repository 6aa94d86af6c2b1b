// A connection of a feed whose answers have a deadline: when one is late or the connection is lost, its owner learns of it.
import type { EventEmitter } from "node:events";
import type { Clock } from "../../core/clock.ts";
import { ConnectionError, OperationTimeoutError } from "../../core/errors.ts";
import { withDeadline } from "../../core/resilience/with-deadline.ts";
import type { FeedLink } from "./leader.ts";

export interface TimedLinkOptions {
  readonly clock: Clock;
  /** After so long without an answer a connection counts as lost. */
  readonly timeoutMs: number;
}

export abstract class TimedLink<Client extends EventEmitter, Options extends TimedLinkOptions>
  implements FeedLink
{
  protected readonly client: Client;
  protected readonly options: Options;
  readonly #server: string;
  #failure: Error | undefined;
  #failed: (error: Error) => void = () => {};

  /** `server`: its name in messages. */
  constructor(client: Client, options: Options, server: string) {
    this.client = client;
    this.options = options;
    this.#server = server;
    client.on("error", (error: Error) => this.fail(error));
    client.on("end", () => this.fail(new ConnectionError(`the connection to ${server} was closed`)));
  }

  /** Why it is of no use any more. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Calls `listener` once, when the connection is lost. */
  onFailure(listener: (error: Error) => void): void {
    this.#failed = listener;
    if (this.#failure !== undefined) listener(this.#failure);
  }

  close(): void {
    const message = `the connection to ${this.#server} was closed`;
    this.fail(new ConnectionError(message, { code: "DISCONNECTED" }));
    this.endClient();
  }

  abstract release(): void;

  /** Sends nothing that could hang. */
  protected abstract endClient(): void;

  protected abstract logIn(): Promise<unknown>;

  protected async connected(): Promise<this> {
    try {
      await this.within("the login", this.logIn());
      return this;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  protected within<T>(what: string, work: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.options;
    return withDeadline(clock, timeoutMs, work, () => {
      const error = new OperationTimeoutError(
        `${this.#server} did not answer ${what} within ${timeoutMs / 1_000} s`,
      );
      this.fail(error);
      throw error;
    });
  }

  protected fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#failed(error);
  }
}
