// Connections of a feed to MariaDB: one for queries with a deadline, one that receives the binary log.
import type { EventEmitter } from "node:events";
import { ConnectionError, MissingPeerError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { requirePeerVersion } from "../../core/peer-package.ts";
import { type BinlogEvent, EventDecoder } from "./binlog.ts";
import type { MysqlConnection } from "./feed-options.ts";
import { TimedLink, type TimedLinkOptions } from "./timed-link.ts";

export type MysqlRow = Readonly<Record<string, unknown>>;

/** The parts of mysql2 that are used, described structurally. */
interface Packet {
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
  isEOF(): boolean;
  isError(): boolean;
  asError(encoding: string): Error;
}

interface Command {
  /** Returns whether it is over. Called without a packet first. */
  execute(packet: Packet | undefined): boolean;
  /** Called when the connection is lost. */
  onResult(error: Error): void;
}

/** The protocol level of a connection. */
interface Wire {
  readonly stream: { write(bytes: Buffer): unknown; unref?(): unknown };
  _resetSequenceId(): void;
  _bumpSequenceId(packets: number): void;
}

interface MysqlClient extends Wire, EventEmitter {
  query(
    text: string,
    values: readonly unknown[],
    done: (error: Error | null, rows: readonly MysqlRow[]) => void,
  ): void;
  connect(done: (error: Error | null) => void): void;
  destroy(): void;
  addCommand?(command: Command): unknown;
}

export interface MysqlLinkOptions extends TimedLinkOptions {
  readonly connection: MysqlConnection;
}

class Link extends TimedLink<MysqlClient, MysqlLinkOptions> {
  protected constructor(client: MysqlClient, options: MysqlLinkOptions) {
    super(client, options, "the database");
  }

  query(text: string, values: readonly unknown[] = []): Promise<readonly MysqlRow[]> {
    const answer = new Promise<readonly MysqlRow[]>((resolve, reject) => {
      this.client.query(text, values, (error, rows) => (error === null ? resolve(rows) : reject(error)));
    });
    return this.within("a query", answer);
  }

  release(): void {
    this.client.stream.unref?.();
  }

  protected endClient(): void {
    this.client.destroy();
  }

  protected logIn(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.client.connect((error) => (error === null ? resolve() : reject(error)));
    });
  }
}

/** Where a log stands; positions of one server are comparable. */
export interface LogPosition {
  readonly file: string;
  readonly offset: number;
}

/** The number at the end of a file's name grows with every file. */
export function positionNumber({ file, offset }: LogPosition): bigint {
  const number = /\.(\d+)$/.exec(file)?.[1];
  if (number === undefined) throw new ConnectionError(`the binary log has a file without a number: ${file}`);
  return (BigInt(number) << 32n) | BigInt(offset);
}

export class MysqlSqlLink extends Link {
  static async open(options: MysqlLinkOptions): Promise<MysqlSqlLink> {
    return new MysqlSqlLink(await clientOf(options), options).connected();
  }

  /** Held until the connection ends, with whatever ends it. */
  async tryLock(key: bigint): Promise<boolean> {
    const [row] = await this.query("SELECT GET_LOCK(?, 0) AS locked", [lockName(key)]);
    return Number(row?.locked) === 1;
  }

  async isLocked(key: bigint): Promise<boolean> {
    const [row] = await this.query("SELECT IS_USED_LOCK(?) AS holder", [lockName(key)]);
    return row !== undefined && row.holder !== null;
  }

  /** The server ends this connection, and with it frees the lock, when nothing is asked for so long. */
  async endWhenSilent(ms: number): Promise<void> {
    await this.query(`SET SESSION wait_timeout = ${Math.max(1, Math.ceil(ms / 1_000))}`);
  }

  /** A snapshot taken now sees exactly the commits before this position. undefined: this server does not say. */
  async snapshotPosition(): Promise<LogPosition | undefined> {
    await this.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    try {
      const rows = await this.query("SHOW STATUS LIKE 'binlog_snapshot_%'");
      const values = new Map(rows.map((row) => [String(row.Variable_name).toLowerCase(), String(row.Value)]));
      const [file, offset] = [values.get("binlog_snapshot_file"), values.get("binlog_snapshot_position")];
      return file === undefined || file === "" ? undefined : { file, offset: Number(offset) };
    } finally {
      await this.query("COMMIT");
    }
  }
}

const lockName = (key: bigint): string => `xcache feed ${key}`;

export class BinlogLink extends Link {
  /** When the server was last heard. */
  heardAt = 0;
  readonly #decoder = new EventDecoder();

  static async open(options: MysqlLinkOptions): Promise<BinlogLink> {
    return new BinlogLink(await clientOf(options), options).connected();
  }

  /** `listener` gets every event from the position on. `heartbeatMs`: how often a server without news says so. */
  async start(
    { file, offset }: LogPosition,
    heartbeatMs: number,
    listener: (event: BinlogEvent) => void,
  ): Promise<void> {
    const { client } = this;
    if (client.addCommand === undefined) {
      throw new ConnectionError("this version of mysql2 cannot receive a binary log; mysql2 3 is needed");
    }
    // Says that checksums and the events that MariaDB alone has are understood; else it would refuse, or replace them.
    await this.query("SET @mariadb_slave_capability = 4, @master_binlog_checksum = @@global.binlog_checksum");
    await this.query(`SET @master_heartbeat_period = ${Math.round(heartbeatMs * 1_000_000)}`);
    const serverId = 1 + Math.floor(this.options.clock.random() * (2 ** 32 - 2));
    this.heardAt = this.options.clock.now();
    // A command of our own: that of mysql2 cannot write the name of a file, and passes on few kinds of events.
    client.addCommand({
      execute: (packet) => {
        if (packet !== undefined) return this.#received(packet, listener);
        client._resetSequenceId();
        client._bumpSequenceId(1);
        client.stream.write(dumpRequest({ file, offset }, serverId));
        return false;
      },
      onResult: (error) => this.fail(error),
    });
  }

  /** Returns whether the stream is over. */
  #received(packet: Packet, listener: (event: BinlogEvent) => void): boolean {
    this.heardAt = this.options.clock.now();
    try {
      if (packet.isError()) throw packet.asError("utf8");
      if (packet.isEOF()) throw new ConnectionError("the binary log has ended");
      // The header of the packet, and a byte that says that an event follows.
      listener(this.#decoder.decode(packet.buffer.subarray(packet.start + 5, packet.end)));
      return false;
    } catch (error) {
      // It would be thrown out of the socket, and end the process.
      this.fail(toError(error));
      return true;
    }
  }
}

const DUMP = 0x12;

/** A packet with COM_BINLOG_DUMP. */
function dumpRequest({ file, offset }: LogPosition, serverId: number): Buffer {
  const name = Buffer.from(file, "latin1");
  const packet = Buffer.alloc(15);
  packet.writeUIntLE(11 + name.length, 0, 3);
  packet.writeUInt8(DUMP, 4);
  packet.writeUInt32LE(offset, 5);
  packet.writeUInt32LE(serverId, 11);
  return Buffer.concat([packet, name]);
}

async function clientOf({ connection, timeoutMs }: MysqlLinkOptions): Promise<MysqlClient> {
  const { createConnection } = await loadMysql();
  const config = typeof connection === "string" ? { uri: connection } : connection;
  const client = createConnection({
    ...config,
    connectTimeout: timeoutMs,
    enableKeepAlive: true,
    rowsAsArray: false,
    multipleStatements: false,
    compress: false,
  });
  return client;
}

interface Mysql {
  createConnection(config: object): MysqlClient;
}

const FEATURE = "A feed of MariaDB";

async function loadMysql(): Promise<Mysql> {
  try {
    const loaded = (await import("mysql2")) as unknown as { readonly default: Mysql };
    requirePeerVersion("mysql2", FEATURE);
    return loaded.default;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    throw new MissingPeerError("mysql2", FEATURE, { cause: error });
  }
}
