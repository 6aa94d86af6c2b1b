// Connections of a feed to PostgreSQL: one for queries with a deadline, one that replicates.
import { ConnectionError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import type { FeedClient, OpenClient, Row } from "./library.ts";
import { decodeMessage, lsnText, type StreamMessage, statusUpdate } from "./pgoutput.ts";
import { TimedLink, type TimedLinkOptions } from "./timed-link.ts";

export interface LinkOptions extends TimedLinkOptions {
  readonly open: OpenClient;
}

class Link extends TimedLink<FeedClient, LinkOptions> {
  constructor(client: FeedClient, options: LinkOptions) {
    super(client, options, "PostgreSQL");
  }

  async query(text: string, values?: readonly unknown[]): Promise<readonly Row[]> {
    const { rows } = await this.within("a query", this.client.query(text, values));
    return rows;
  }

  release(): void {
    this.client.connection?.stream.unref?.();
  }

  protected endClient(): void {
    // Ending sends a message and waits for the server to close; both may hang.
    this.client.end().catch(() => {});
    this.client.connection?.stream.destroy();
  }

  protected logIn(): Promise<unknown> {
    return this.client.connect();
  }
}

export class SqlLink extends Link {
  static async open(options: LinkOptions): Promise<SqlLink> {
    const client = await options.open({ application_name: "xcache feed" });
    return new SqlLink(client, options).connected();
  }

  /** Whether some process holds the lock of a leader. */
  async isLocked(key: bigint): Promise<boolean> {
    return (await this.query(LOCKED, [String(key)])).length > 0;
  }

  /** Calls `listener` with the payload of every notification that this connection listens for. */
  onNotification(listener: (payload: string) => void): void {
    this.client.on("notification", ({ payload = "" }: { readonly payload?: string }) => listener(payload));
  }
}

export class ReplicationLink extends Link {
  /** When the server was last heard. */
  heardAt = 0;

  static async open(options: LinkOptions): Promise<ReplicationLink> {
    const client = await options.open({ application_name: "xcache feed", replication: "database" });
    if (client.connection === undefined) {
      throw new ConnectionError(
        "the native bindings of pg cannot replicate; use the JavaScript client of the package pg",
      );
    }
    return new ReplicationLink(client, options).connected();
  }

  /** Held until the connection ends, with whatever ends it. */
  async tryLock(key: bigint): Promise<boolean> {
    const [row] = await this.query(`SELECT pg_try_advisory_lock(${key}) AS locked`);
    return row?.locked === true;
  }

  /** The server ends a connection over which nobody acknowledges for so long, and with it frees lock and slot. */
  async endWhenSilent(ms: number): Promise<void> {
    await this.query(`SET wal_sender_timeout = ${Math.round(ms)}`);
  }

  /**
   * Waits for all transactions that are writing now, however long they take. Returns the name of a snapshot that sees
   * exactly what the slot will not send; it lasts until the next command.
   */
  async createSlot(name: string, isTemporary: boolean): Promise<string> {
    const kind = isTemporary ? "TEMPORARY LOGICAL" : "LOGICAL";
    const text = `CREATE_REPLICATION_SLOT ${quoted(name)} ${kind} pgoutput EXPORT_SNAPSHOT`;
    const { rows } = await this.client.query(text);
    return String(rows[0]?.snapshot_name);
  }

  /** Resolves once the stream has begun; `listener` gets every message of it. */
  async start(
    slot: string,
    publication: string,
    hasMessages: boolean,
    listener: (message: StreamMessage) => void,
  ): Promise<void> {
    const { connection } = this.client;
    if (connection === undefined) return;
    const { clock } = this.options;
    connection.on("copyData", ({ chunk }: { readonly chunk: Buffer }) => {
      this.heardAt = clock.now();
      try {
        listener(decodeMessage(chunk));
      } catch (error) {
        // It would be thrown out of the socket, and end the process.
        this.fail(toError(error));
      }
    });
    const options = [
      "proto_version '1'",
      `publication_names ${literal(quoted(publication))}`,
      ...(hasMessages ? ["messages 'true'"] : []),
    ];
    const text = `START_REPLICATION SLOT ${quoted(slot)} LOGICAL ${lsnText(0n)} (${options.join(", ")})`;
    const started = new Promise<void>((resolve, reject) => {
      connection.once("replicationStart", resolve);
      // Settles only when the stream ends.
      this.client.query(text).then(() => reject(new ConnectionError("the stream has ended")), reject);
    });
    await this.within("START_REPLICATION", started);
    this.heardAt = clock.now();
  }

  /** Confirms everything up to `position`; `wantsReply`: the server is to say how far it is. */
  confirm(position: bigint, wantsReply: boolean): void {
    const { clock } = this.options;
    if (this.failure !== undefined) return;
    this.client.connection?.sendCopyFromChunk(
      statusUpdate(position, clock.wall?.() ?? clock.now(), wantsReply),
    );
  }
}

const LOCKED = `
SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (classid::bigint << 32 | objid::bigint) = $1`;

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
