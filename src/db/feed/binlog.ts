// Decodes the events of a binary log of MariaDB or MySQL, as a server sends them to a replica.
// MySQL Source Code Documentation, "Binlog Event"; MariaDB Knowledge Base, "2-Binlog Event Header" and the pages after it.
import { crc32 } from "node:zlib";

export type BinlogEvent =
  /** `file`: where the following events are. */
  | { readonly kind: "rotate"; readonly file: string; readonly position: number }
  /** What the next rows events of this id are about. */
  | { readonly kind: "table"; readonly table: BinlogTable }
  | {
      readonly kind: "rows";
      readonly id: string;
      readonly rows: ChangedRows | undefined;
      readonly end: number;
    }
  | { readonly kind: "statement"; readonly schema: string; readonly text: string; readonly end: number }
  | { readonly kind: "commit"; readonly end: number }
  /** `branch`: the name of the distributed transaction, as the statement that decides it has it. */
  | { readonly kind: "prepare"; readonly branch: string; readonly isDecided: boolean; readonly end: number }
  /** May change anything. */
  | { readonly kind: "unknown"; readonly type: number; readonly end: number }
  /** Concerns no rows; only its position counts. */
  | { readonly kind: "other"; readonly end: number };

/** Rows of one event, to be decoded with the description of their table. */
export interface ChangedRows {
  readonly change: "insert" | "update" | "delete";
  readonly body: Buffer;
}

export interface BinlogTable {
  readonly id: string;
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly BinlogColumn[];
}

interface BinlogColumn {
  readonly type: number;
  /** What the type needs to know its length. */
  readonly meta: number;
}

const HEADER_BYTES = 19;

/** Events that change no rows. MariaDB: annotations, checkpoints, GTIDs, GTID lists, the start of encryption. */
const HARMLESS = new Set([3, 5, 13, 14, 15, 27, 28, 29, 33, 34, 35, 36, 37, 41, 160, 161, 162, 163, 164]);
const ROWS: ReadonlyMap<number, ChangedRows["change"]> = new Map([
  [23, "insert"],
  [24, "update"],
  [25, "delete"],
  [30, "insert"],
  [31, "update"],
  [32, "delete"],
]);
/** Rows that MariaDB has compressed, and updates of single fields of JSON documents: only their table is read. */
const OPAQUE_ROWS = new Set([39, 166, 167, 168, 169, 170, 171]);
const FIRST_V2 = 30;

const FORMAT_DESCRIPTION = 15;
const CHECKSUM_BYTES = 4;

/** Decodes the events of one connection. */
export class EventDecoder {
  /** Whether events end with a checksum; the description of the format that every file begins with says so. */
  #hasChecksum: boolean | undefined;

  decode(event: Buffer): BinlogEvent {
    if (event.readUInt8(4) === FORMAT_DESCRIPTION) {
      // It has room for a checksum in any case, and before that the number of the algorithm.
      this.#hasChecksum = event.readUInt8(event.length - CHECKSUM_BYTES - 1) === 1;
    }
    const hasChecksum = this.#hasChecksum ?? endsWithChecksum(event);
    return decodeEvent(hasChecksum ? event.subarray(0, -CHECKSUM_BYTES) : event);
  }
}

/** The first event, which names the file, comes before the description of its format. */
function endsWithChecksum(event: Buffer): boolean {
  const end = event.length - CHECKSUM_BYTES;
  return end >= HEADER_BYTES && event.readUInt32LE(end) === crc32(event.subarray(0, end));
}

/** Without a checksum. */
function decodeEvent(event: Buffer): BinlogEvent {
  const type = event.readUInt8(4);
  const end = event.readUInt32LE(13);
  const body = event.subarray(HEADER_BYTES);
  switch (type) {
    case 2:
      return { kind: "statement", ...statementOf(body), end };
    case 4:
      return {
        kind: "rotate",
        file: body.toString("latin1", 8),
        position: Number(body.readBigUInt64LE(0)),
      };
    case 16:
      return { kind: "commit", end };
    case 19:
      return { kind: "table", table: tableOf(body) };
    case 38:
      return { kind: "prepare", ...preparedOf(body), end };
  }
  const change = ROWS.get(type);
  if (change !== undefined) {
    const extra = type >= FIRST_V2 ? body.readUInt16LE(8) : 0;
    return { kind: "rows", id: idOf(body), rows: { change, body: body.subarray(8 + extra) }, end };
  }
  if (OPAQUE_ROWS.has(type)) return { kind: "rows", id: idOf(body), rows: undefined, end };
  return HARMLESS.has(type) ? { kind: "other", end } : { kind: "unknown", type, end };
}

/** A flag for a commit in one phase, the number of the format, the lengths of both parts of the name, and these. */
function preparedOf(body: Buffer): { readonly branch: string; readonly isDecided: boolean } {
  const [format, first, second] = [1, 5, 9].map((at) => body.readUInt32LE(at)) as [number, number, number];
  const hex = (from: number, bytes: number): string => body.toString("hex", from, from + bytes);
  const branch = `x'${hex(13, first)}',x'${hex(13 + first, second)}',${format}`;
  return { branch, isDecided: body.readUInt8(0) === 1 };
}

/** Six bytes. */
const idOf = (body: Buffer): string => body.toString("hex", 0, 6);

function statementOf(body: Buffer): { readonly schema: string; readonly text: string } {
  const [schemaBytes, variableBytes] = [body.readUInt8(8), body.readUInt16LE(11)];
  const at = 13 + variableBytes;
  return {
    schema: body.toString("utf8", at, at + schemaBytes),
    text: body.toString("utf8", at + schemaBytes + 1),
  };
}

/** Reads from front to back. */
class Reader {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes;
    this.at = at;
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  /** Little endian, up to six bytes. */
  number(bytes: number): number {
    this.at += bytes;
    return bytes === 0 ? 0 : this.bytes.readUIntLE(this.at - bytes, bytes);
  }

  take(bytes: number): Buffer {
    this.at += bytes;
    if (this.at > this.bytes.length) throw new RangeError("a binary log event ends too early");
    return this.bytes.subarray(this.at - bytes, this.at);
  }

  /** A length-encoded integer. */
  count(): number {
    const first = this.number(1);
    if (first < 251) return first;
    if (first === 252) return this.number(2);
    if (first === 253) return this.number(3);
    return Number(this.take(8).readBigUInt64LE(0));
  }

  /** A text after its length, and a zero byte. */
  name(): string {
    const text = this.take(this.number(1)).toString("utf8");
    this.at++;
    return text;
  }
}

/** `types` are those of the protocol: 1 tiny, 2 short, 3 long, 8 longlong, 9 int24, 13 year, 15 varchar, 246 decimal ... */
function tableOf(body: Buffer): BinlogTable {
  const reader = new Reader(body, 8);
  const [schema, name] = [reader.name(), reader.name()];
  const types = [...reader.take(reader.count())];
  const metas = new Reader(reader.take(reader.count()), 0);
  return {
    id: idOf(body),
    schema,
    name,
    columns: types.map((type) => ({ type, meta: metaOf(type, metas) })),
  };
}

function metaOf(type: number, metas: Reader): number {
  switch (type) {
    // float, double, timestamp2, datetime2, time2, json, blobs, geometry; compressed blobs of MariaDB
    case 4:
    case 5:
    case 17:
    case 18:
    case 19:
    case 140:
    case 245:
    case 249:
    case 250:
    case 251:
    case 252:
    case 255:
      return metas.number(1);
    // varchar, bit; compressed varchar of MariaDB
    case 15:
    case 16:
    case 141:
    case 253:
      return metas.number(2);
    // decimal, enum, set, char: two bytes in the order they are written
    case 246:
    case 247:
    case 248:
    case 254:
      return (metas.number(1) << 8) | metas.number(1);
    default:
      return 0;
  }
}

/** The values of some columns as texts; undefined: not in the event, or of a type that is not an integer. */
export type RowValues = readonly (string | undefined)[];

export interface RowImages {
  readonly before: RowValues | undefined;
  readonly after: RowValues | undefined;
}

/** What a column needs to be read as the database prints it. */
export interface IntegerColumn {
  /** From 0. */
  readonly position: number;
  readonly isUnsigned: boolean;
}

/** Decodes the given columns of each row. Throws if the event is not as described. */
export function rowsOf(
  { change, body }: ChangedRows,
  { columns }: BinlogTable,
  wanted: readonly IntegerColumn[],
): RowImages[] {
  const reader = new Reader(body, 0);
  const width = reader.count();
  const bitmapBytes = (width + 7) >> 3;
  if (width !== columns.length)
    throw new RangeError("a rows event has another number of columns than its table");
  const present = reader.take(bitmapBytes);
  const presentAfter = change === "update" ? reader.take(bitmapBytes) : present;
  const images: RowImages[] = [];
  while (!reader.isAtEnd) {
    const first = imageOf(reader, columns, present, wanted);
    if (change === "insert") images.push({ before: undefined, after: first });
    else if (change === "delete") images.push({ before: first, after: undefined });
    else images.push({ before: first, after: imageOf(reader, columns, presentAfter, wanted) });
  }
  return images;
}

const isSet = (bitmap: Buffer, at: number): boolean => ((bitmap[at >> 3] ?? 0) & (1 << (at & 7))) !== 0;

function imageOf(
  reader: Reader,
  columns: readonly BinlogColumn[],
  present: Buffer,
  wanted: readonly IntegerColumn[],
): RowValues {
  const inEvent = columns.flatMap((column, at) => (isSet(present, at) ? [{ column, at }] : []));
  const nulls = reader.take((inEvent.length + 7) >> 3);
  const values: (string | undefined)[] = [];
  inEvent.forEach(({ column, at }, place) => {
    if (isSet(nulls, place)) return;
    const bytes = reader.take(lengthOf(column, reader));
    const found = wanted.find(({ position }) => position === at);
    if (found !== undefined) values[at] = integerText(column.type, bytes, found.isUnsigned);
  });
  return values;
}

/** 1 tiny, 2 short, 3 long, 8 longlong, 9 int24. */
const INTEGER_TYPES = new Set([1, 2, 3, 8, 9]);

function integerText(type: number, bytes: Buffer, isUnsigned: boolean): string | undefined {
  if (!INTEGER_TYPES.has(type)) return undefined;
  if (bytes.length === 8) {
    return String(isUnsigned ? bytes.readBigUInt64LE(0) : bytes.readBigInt64LE(0));
  }
  return String(isUnsigned ? bytes.readUIntLE(0, bytes.length) : bytes.readIntLE(0, bytes.length));
}

/** The length of a value; reads what stands before it. */
function lengthOf({ type, meta }: BinlogColumn, reader: Reader): number {
  switch (type) {
    case 1: // tiny
    case 13: // year
      return 1;
    case 2: // short
      return 2;
    case 9: // int24
    case 10: // date
    case 11: // time
    case 14: // newdate
      return 3;
    case 3: // long
    case 4: // float
    case 7: // timestamp
      return 4;
    case 5: // double
    case 8: // longlong
    case 12: // datetime
      return 8;
    case 6: // null
      return 0;
    case 15: // varchar
    case 141: // the same, compressed
    case 253: // var_string
      return reader.number(meta > 255 ? 2 : 1);
    case 16: // bit
      return (((meta & 0xff) + 7) >> 3) + (meta >> 8);
    case 17: // timestamp2
      return 4 + ((meta + 1) >> 1);
    case 18: // datetime2
      return 5 + ((meta + 1) >> 1);
    case 19: // time2
      return 3 + ((meta + 1) >> 1);
    case 140: // compressed blob
    case 245: // json
    case 249: // blobs
    case 250:
    case 251:
    case 252:
    case 255: // geometry
      return reader.number(meta);
    case 246: // decimal
      return decimalBytes(meta >> 8, meta & 0xff);
    case 247: // enum
    case 248: // set
      return meta & 0xff;
    case 254: // char, and enum and set inside it
      return charBytes(meta, reader);
    default:
      throw new RangeError(`a binary log event has a column of the unknown type ${type}`);
  }
}

/** The real type is in the first byte; lengths above 255 have two of their bits there. */
function charBytes(meta: number, reader: Reader): number {
  const [type, low] = [meta >> 8, meta & 0xff];
  if ((type & 0x30) !== 0x30) return reader.number((low | (((type & 0x30) ^ 0x30) << 4)) > 255 ? 2 : 1);
  if (type === 247 || type === 248) return low;
  return reader.number(low > 255 ? 2 : 1);
}

/** Groups of nine digits take four bytes, what is left over the fewest bytes that hold it. */
const LEFT_OVER_BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

function decimalBytes(precision: number, scale: number): number {
  const bytesOf = (digits: number): number => Math.floor(digits / 9) * 4 + (LEFT_OVER_BYTES[digits % 9] ?? 0);
  return bytesOf(precision - scale) + bytesOf(scale);
}
