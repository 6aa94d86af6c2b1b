// The client of a store: loaded when a cache is opened on such a store, not with the library, and opened by the first call.
import type { Failed } from "../../core/backend.ts";
import { ConnectionError } from "../../core/errors.ts";

/** Code that is imported once, for all stores that need it. */
export class LazyModule<Code> {
  readonly #import: () => Promise<Code>;
  #importing: Promise<Code> | undefined;
  loaded: Code | undefined;

  constructor(importing: () => Promise<Code>) {
    this.#import = importing;
  }

  /** One that failed is tried again. */
  async load(): Promise<Code> {
    if (this.loaded !== undefined) return this.loaded;
    this.#importing ??= this.#import().finally(() => {
      this.#importing = undefined;
    });
    this.loaded = await this.#importing;
    return this.loaded;
  }
}

export class LazyClient<Code, Client extends { close(): void }> {
  readonly #code: LazyModule<Code>;
  readonly #open: (code: Code) => Client;
  #client: Client | undefined;
  /** Grows with every close. */
  #session = 0;

  constructor(code: LazyModule<Code>, open: (code: Code) => Client) {
    this.#code = code;
    this.#open = open;
  }

  /** So that the first call finds the code there; one that does not tries again, and says why it failed. */
  prepare(): void {
    this.#code.load().catch(() => {});
  }

  /** If some call has opened it. */
  get opened(): Client | undefined {
    return this.#client;
  }

  /** Without waiting, where the code is there already: calls then leave in the tick they are made in. */
  get ready(): Client | undefined {
    if (this.#client === undefined && this.#code.loaded !== undefined)
      this.#client = this.#open(this.#code.loaded);
    return this.#client;
  }

  async whenReady(): Promise<Client> {
    const session = this.#session;
    await this.#code.load();
    if (session !== this.#session)
      throw new ConnectionError("the store was disconnected meanwhile", { code: "DISCONNECTED" });
    return this.ready as Client;
  }

  use<T>(call: (client: Client) => Promise<T>): Promise<T> {
    const client = this.ready;
    return client === undefined ? this.whenReady().then(call) : call(client);
  }

  later(call: (client: Client) => void, failed: Failed): void {
    // Whatever it throws is told as well: nobody else would hear of it.
    this.whenReady().then(call).catch(failed);
  }

  close(): void {
    this.#session++;
    this.#client?.close();
    this.#client = undefined;
  }
}
