// Separate connections to one server, for scans and other background work, and the proof that they lead to the server in use.
import type { XCacheError } from "../../../core/errors.ts";
import { disconnected } from "../../wire/connection-error.ts";
import { Connection, type ConnectionSettings, type Endpoint } from "./connection.ts";
import { notInUse, notMaster } from "./connection-error.ts";
import { factsIn } from "./handshake.ts";
import { readServerInfo, type ServerInfo } from "./server-info.ts";

/** The server and the connections that calls use. */
export interface ServerInUse {
  readonly info: ServerInfo;
  readonly isClosed: boolean;
  readonly links: readonly { readonly connection: Connection | undefined }[];
  connect(): Promise<void>;
}

export interface ProvenConnection {
  readonly connection: Connection;
  /** Identifies the history of the data that it reads. */
  readonly history: string | undefined;
}

export class SeparateConnections {
  readonly #inUse: ServerInUse;
  readonly #where: () => Endpoint | Promise<Endpoint>;
  readonly #settings: Omit<ConnectionSettings, "endpoint">;
  /** One for each connection, open or opening. */
  readonly #ends = new Set<AbortController>();

  constructor(
    inUse: ServerInUse,
    where: () => Endpoint | Promise<Endpoint>,
    settings: Omit<ConnectionSettings, "endpoint">,
  ) {
    this.#inUse = inUse;
    this.#where = where;
    this.#settings = settings;
  }

  /** The caller destroys it. Its reads are not tracked. */
  async open(): Promise<Connection> {
    if (this.#inUse.isClosed) throw disconnected();
    const end = new AbortController();
    const over = (): void => void this.#ends.delete(end);
    this.#ends.add(end);
    try {
      const endpoint = await this.#where();
      const listener = { pushed: () => {}, closed: over, signal: end.signal };
      return await Connection.open({ ...this.#settings, endpoint }, listener);
    } catch (error) {
      over();
      throw error;
    }
  }

  /** As `open`; rejects unless it leads to the master in use. */
  async openProven(): Promise<ProvenConnection> {
    await this.#inUse.connect();
    const connection = await this.open();
    try {
      return { connection, history: await this.historyOn(connection) };
    } catch (error) {
      connection.destroy(notInUse(connection.name));
      throw error;
    }
  }

  /**
   * The history of the data that the connection reads. Throws unless its server is the master in use: what another one
   * lacks, or gives up for the data of its own master, may still be read over the other connections.
   */
  async historyOn(connection: Connection): Promise<string | undefined> {
    const { runId } = this.#inUse.info;
    const facts =
      runId === undefined
        ? readServerInfo(undefined, await greetingOn(connection))
        : readServerInfo(await connection.command("INFO"));
    if (!facts.isMaster) throw notMaster(connection.name);
    const names = this.#inUse.links.flatMap((link) => link.connection?.name ?? []);
    if (facts.runId !== runId || names.some((name) => name !== connection.name))
      throw notInUse(connection.name);
    return facts.history?.id;
  }

  /** Ends them all; they are not opened again. */
  end(reason: XCacheError): void {
    for (const end of [...this.#ends]) end.abort(reason);
  }
}

/** What HELLO says where INFO is refused; nothing where HELLO is unknown too. */
async function greetingOn(connection: Connection): Promise<ReadonlyMap<string, string>> {
  return connection.plain === undefined ? factsIn(await connection.command("HELLO")) : connection.greeting;
}
