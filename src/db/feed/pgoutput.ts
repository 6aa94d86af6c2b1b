// Decodes the replication stream: the messages of a walsender, and those of the output plugin pgoutput inside them.
// PostgreSQL documentation, "Streaming Replication Protocol" and "Logical Replication Message Formats", version 1.

export type StreamMessage =
  | { readonly kind: "keepalive"; readonly end: bigint; readonly wantsReply: boolean }
  | { readonly kind: "begin"; readonly xid: number }
  /** `end`: the position behind the commit. `at`: milliseconds since 1970 by the server's clock. */
  | { readonly kind: "commit"; readonly end: bigint; readonly at: number }
  | { readonly kind: "relation"; readonly relation: Relation }
  /** The old row or its key where the server sends it, and the new row. */
  | {
      readonly kind: "change";
      readonly relation: number;
      readonly before: Tuple | undefined;
      readonly after: Tuple | undefined;
    }
  | { readonly kind: "truncate"; readonly relations: readonly number[] }
  | { readonly kind: "message"; readonly prefix: string }
  /** Nothing that a cache needs to know. */
  | { readonly kind: "other" };

export interface Relation {
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly RelationColumn[];
}

interface RelationColumn {
  readonly name: string;
  /** Part of the replica identity: sent with the old row. */
  readonly isKey: boolean;
}

/** The text of each column; undefined: not sent, since it is NULL, unchanged or not part of the key. */
export type Tuple = readonly (string | undefined)[];

/** Microseconds between 1970 and PostgreSQL's epoch, 2000. */
const EPOCH_MICROSECONDS = 946_684_800_000_000n;

/** A message of the walsender. Throws RangeError if it is shorter than it says. */
export function decodeMessage(bytes: Buffer): StreamMessage {
  const reader = new Reader(bytes);
  switch (reader.letter()) {
    case "k": {
      const end = reader.int64();
      reader.int64();
      return { kind: "keepalive", end, wantsReply: reader.int8() === 1 };
    }
    case "w":
      // Positions and time of sending.
      reader.skip(24);
      return decodeChange(reader);
    default:
      return { kind: "other" };
  }
}

/** "Standby status update": everything up to `position` has been received, and needs not be sent again. */
export function statusUpdate(position: bigint, nowMs: number, wantsReply: boolean): Buffer {
  const bytes = Buffer.alloc(34);
  bytes.write("r", 0, "latin1");
  for (const at of [1, 9, 17]) bytes.writeBigUInt64BE(position, at);
  bytes.writeBigInt64BE(BigInt(Math.round(nowMs * 1_000)) - EPOCH_MICROSECONDS, 25);
  bytes.writeUInt8(wantsReply ? 1 : 0, 33);
  return bytes;
}

function decodeChange(reader: Reader): StreamMessage {
  switch (reader.letter()) {
    case "B":
      reader.skip(16);
      return { kind: "begin", xid: reader.uint32() };
    case "C": {
      reader.skip(9);
      const end = reader.int64();
      return { kind: "commit", end, at: Number((reader.int64() + EPOCH_MICROSECONDS) / 1_000n) };
    }
    case "R":
      return { kind: "relation", relation: decodeRelation(reader) };
    case "I":
    case "U":
    case "D":
      return decodeRow(reader);
    case "T": {
      const count = reader.uint32();
      reader.int8();
      return { kind: "truncate", relations: Array.from({ length: count }, () => reader.uint32()) };
    }
    case "M":
      reader.skip(9);
      return { kind: "message", prefix: reader.text() };
    default:
      return { kind: "other" };
  }
}

function decodeRelation(reader: Reader): Relation {
  const oid = reader.uint32();
  const schema = reader.text();
  const name = reader.text();
  reader.int8();
  const columns = Array.from({ length: reader.uint16() }, () => {
    const isKey = (reader.int8() & 1) === 1;
    const column = { name: reader.text(), isKey };
    // Type and its modifier.
    reader.skip(8);
    return column;
  });
  return { oid, schema, name, columns };
}

function decodeRow(reader: Reader): StreamMessage {
  const relation = reader.uint32();
  let before: Tuple | undefined;
  let after: Tuple | undefined;
  while (!reader.isAtEnd) {
    const part = reader.letter();
    const tuple = decodeTuple(reader);
    if (part === "N") after = tuple;
    else before = tuple;
  }
  return { kind: "change", relation, before, after };
}

function decodeTuple(reader: Reader): Tuple {
  return Array.from({ length: reader.uint16() }, () => {
    // n: NULL, u: an unchanged value that is stored out of line.
    if (reader.letter() !== "t") return undefined;
    return reader.sized();
  });
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  letter(): string {
    return String.fromCharCode(this.int8());
  }

  int8(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  uint16(): number {
    this.#at += 2;
    return this.#bytes.readUInt16BE(this.#at - 2);
  }

  uint32(): number {
    this.#at += 4;
    return this.#bytes.readUInt32BE(this.#at - 4);
  }

  int64(): bigint {
    this.#at += 8;
    return this.#bytes.readBigInt64BE(this.#at - 8);
  }

  /** Up to the next zero byte. */
  text(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end < 0) throw new RangeError("a text of the replication stream has no end");
    const text = this.#bytes.toString("utf8", this.#at, end);
    this.#at = end + 1;
    return text;
  }

  sized(): string {
    const length = this.uint32();
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError("a value of the replication stream is cut off");
    return this.#bytes.toString("utf8", this.#at - length, this.#at);
  }
}

// Positions in the write-ahead log, as texts like 16/B374D848 and as numbers.

export function lsnOf(text: string): bigint {
  const [high = "0", low = "0"] = text.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function lsnText(lsn: bigint): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffffffffn).toString(16).toUpperCase()}`;
}

/** The headers that a page of the log, and the first page of a segment, begin with. */
const PAGE_HEADERS = [24n, 40n];

/**
 * The end of the last record, from an insert position: on a page without a record that position is behind the page's
 * header, which a stream reaches only with the next record.
 */
export function endOfRecords(insert: bigint, pageBytes: bigint): bigint {
  const within = insert % pageBytes;
  return PAGE_HEADERS.includes(within) ? insert - within : insert;
}
