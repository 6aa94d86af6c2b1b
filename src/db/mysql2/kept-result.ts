// A result as it is cached: the packets that the server sent. The library reads them again with each caller's own options.
import { types } from "../../core/lazy-builtin.ts";
import type { Classes } from "./driver.ts";
import type { Config, MysqlConnection, StatementCall } from "./library.ts";

interface KeptResult {
  readonly encoding: string;
  /** Whether columns come with the types that only MariaDB has. */
  readonly isExtended: boolean;
  readonly bytes: Uint8Array;
  /** How many there are. */
  readonly rows: number;
}

/** What the library would have given to the callback. */
export interface Answer {
  readonly rows: unknown;
  readonly fields: unknown;
}

/** Reads packets as a connection with this configuration would. */
export interface ResultMaker {
  readonly classes: Classes;
  readonly config: Config;
}

export function keptResult(
  connection: MysqlConnection,
  packets: readonly Buffer[],
  rows: unknown,
): KeptResult {
  return {
    encoding: connection.clientEncoding ?? "utf8",
    isExtended: connection._mariadbExtendedMetadata === true,
    bytes: Buffer.concat(packets),
    rows: Array.isArray(rows) ? rows.length : 0,
  };
}

/** undefined: `data` is not a cached result, or not one that this version of the library can read. */
export function restoreKept(
  data: unknown,
  { classes, config }: ResultMaker,
  { method, options }: StatementCall,
): Answer | undefined {
  const { packet: PacketOf, [method === "query" ? "text" : "binary"]: CommandOf } = classes;
  if (!isKept(data) || CommandOf === undefined || PacketOf === undefined) return undefined;
  try {
    // Values of the result may be parts of it.
    const bytes = Buffer.from(data.bytes);
    const given = { rowsAsArray: config.rowsAsArray, ...options };
    const sent = {
      ...given,
      sql: "",
      values: undefined,
      timeout: undefined,
      statement: { id: 0, parameters: [] },
    };
    const command = new CommandOf(sent, () => {});
    let answer: Answer | undefined;
    command.done = () => {
      answer = { rows: command._rows?.[0], fields: command._fields?.[0] };
      return null;
    };
    const connection = connectionLike(config, data);
    let isOver = command.execute(undefined, connection);
    for (let at = 0; at < bytes.length && !isOver; ) {
      const end = at + bytes.readUInt32LE(at);
      isOver = command.execute(new PacketOf(0, bytes, at, end), connection);
      at = end;
    }
    return isOver ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** As much of a connection as a command needs that sends nothing. */
function connectionLike(config: Config, { encoding, isExtended }: KeptResult): object {
  return {
    config,
    clientEncoding: encoding,
    serverEncoding: encoding,
    serverCapabilityFlags: 0,
    _handshakePacket: { capabilityFlags: 0 },
    _mariadbExtendedMetadata: isExtended,
    writePacket() {},
    _resetSequenceId() {},
  };
}

function isKept(data: unknown): data is KeptResult {
  if (typeof data !== "object" || data === null) return false;
  const { encoding, bytes } = data as Partial<KeptResult>;
  return typeof encoding === "string" && types.isUint8Array(bytes);
}
