// The client of a store: its code is loaded when a cache is opened on such a store, and the first call opens it.
import type { Failed } from "../../core/backend.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { LazyModule } from "../../core/lazy-module.ts";

export class LazyClient<Code, Client extends { close(): void }> {
  readonly #code: LazyModule<Code>;
  readonly #open: (code: Code) => Client;
  /** The client, if a call has opened it. */
  opened: Client | undefined;
  /** Grows with every close. */
  #session = 0;
  #isClosed = false;

  constructor(code: LazyModule<Code>, open: (code: Code) => Client) {
    this.#code = code;
    this.#open = open;
  }

  /** Loads the code ahead of the first call. An error is ignored here: the first call loads again and reports it. */
  prepare(): void {
    this.#code.load().catch(() => {});
  }

  /** The client without waiting, if its code is loaded: calls are then sent in the tick they are made in. */
  get ready(): Client | undefined {
    if (this.opened === undefined && this.#code.loaded !== undefined && !this.#isClosed)
      this.opened = this.#open(this.#code.loaded);
    return this.opened;
  }

  async whenReady(): Promise<Client> {
    const session = this.#session;
    if (!this.#isClosed) await this.#code.load();
    if (this.#isClosed || session !== this.#session)
      throw new ConnectionError("the store was disconnected meanwhile", { code: "DISCONNECTED" });
    return this.ready as Client;
  }

  use<T>(call: (client: Client) => Promise<T>): Promise<T> {
    const client = this.ready;
    return client === undefined ? this.whenReady().then(call) : call(client);
  }

  later(call: (client: Client) => void, failed: Failed): void {
    // Also reports what `call` throws: nothing else would.
    this.whenReady().then(call).catch(failed);
  }

  /** Once closed, only this lets calls open it again. */
  reopen(): void {
    this.#isClosed = false;
  }

  close(): void {
    this.#isClosed = true;
    this.#session++;
    this.opened?.close();
    this.opened = undefined;
  }
}
