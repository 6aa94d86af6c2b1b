// Decodes the beginning of MessagePack: members that are complete as usual, and the one in which the bytes end as far as it goes.
import type { Beginning } from "../core/codec.ts";
import { ownBuffer, ownMemory, viewFrom } from "./binary-view.ts";
import { damaged } from "./byte-reader.ts";
import { setOwn } from "./containers.ts";
import { decode } from "./decode.ts";
import { wholeText } from "./json-beginning.ts";
import type { CodecLimits } from "./options.ts";
import { EXTENSION, LAST_VIEW } from "./payload-format.ts";

/** Where the bytes are not enough. */
const OVER = Symbol("over");

/** The head of a value: what it is, where its content begins, and how many members or bytes that has. */
interface Head {
  readonly kind: "array" | "object" | "text" | "binary" | "extension" | "scalar";
  readonly at: number;
  readonly count: number;
  readonly type?: number;
}

/** Throws CodecError for bytes that are damaged. */
export function msgpackBeginning(bytes: Uint8Array, limits: CodecLimits): Omit<Beginning, "isWhole"> {
  return new PartialValue(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), limits).at(0, 0);
}

class PartialValue {
  readonly #bytes: Buffer;
  readonly #limits: CodecLimits;

  constructor(bytes: Buffer, limits: CodecLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
  }

  at(start: number, depth: number): Omit<Beginning, "isWhole"> {
    const head = headAt(this.#bytes, start);
    if (head === OVER || depth > this.#limits.maxDepth) return { value: undefined };
    const { kind, at, count } = head;
    if (kind === "array") return { value: this.#list(at, count, depth), members: count };
    if (kind === "object") return { value: this.#object(at, count, depth), members: count };
    if (kind === "extension") return this.#extension(head, depth);
    const content = this.#bytes.subarray(at, at + count);
    if (kind === "text") return { value: wholeText(content) };
    if (kind === "binary") return { value: ownBuffer(content), members: count };
    const end = endOf(this.#bytes, start);
    return { value: end === OVER ? undefined : decode(this.#bytes, this.#limits, start, end) };
  }

  #extension({ type = 0, at, count }: Head, depth: number): Omit<Beginning, "isWhole"> {
    const content = this.#bytes.subarray(at, at + count);
    if (type === EXTENSION.text16) return { value: content.toString("utf16le") };
    if (type === EXTENSION.arrayBuffer) return { value: ownMemory(content), members: count };
    if (type === EXTENSION.map || type === EXTENSION.set) {
      const head = headAt(this.#bytes, at);
      if (head === OVER) return { value: type === EXTENSION.map ? new Map() : new Set() };
      const isMap = type === EXTENSION.map;
      if (head.kind !== (isMap ? "object" : "array")) throw damaged("an extension contains something else");
      const value = isMap
        ? new Map(this.#pairs(head.at, head.count, depth))
        : new Set(this.#list(head.at, head.count, depth));
      return { value, members: head.count };
    }
    if (type >= EXTENSION.firstView && type <= LAST_VIEW) {
      // An element takes at most eight bytes, and the content begins with whole ones.
      const value = viewFrom(type - EXTENSION.firstView, content.subarray(0, content.length & ~7));
      return { value: content.length === count ? viewFrom(type - EXTENSION.firstView, content) : value };
    }
    return { value: undefined };
  }

  #list(from: number, count: number, depth: number): unknown[] {
    const list: unknown[] = [];
    let at = from;
    for (let index = 0; index < count && at < this.#bytes.length; index++) {
      const [value, end] = this.#member(at, depth);
      list.push(value);
      at = end;
    }
    return list;
  }

  #object(from: number, count: number, depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const [name, value] of this.#pairs(from, count, depth)) {
      if (typeof name !== "string") throw damaged("an object key is not a string");
      setOwn(object, name, value);
    }
    return object;
  }

  /** A pair whose name is not complete is left out: what its value is called decides whether it may be shown. */
  *#pairs(from: number, count: number, depth: number): Iterable<[unknown, unknown]> {
    let at = from;
    for (let index = 0; index < count; index++) {
      const nameEnd = endOf(this.#bytes, at);
      if (nameEnd === OVER || nameEnd >= this.#bytes.length) return;
      const [value, end] = this.#member(nameEnd, depth);
      yield [decode(this.#bytes, this.#limits, at, nameEnd), value];
      at = end;
    }
  }

  /** A member and where the next one begins; of the last one what there is. */
  #member(at: number, depth: number): [value: unknown, end: number] {
    const end = endOf(this.#bytes, at);
    return end === OVER
      ? [this.at(at, depth + 1).value, this.#bytes.length]
      : [decode(this.#bytes, this.#limits, at, end), end];
  }
}

/** Where the value that begins at `start` ends. */
function endOf(bytes: Buffer, start: number): number | typeof OVER {
  let at = start;
  for (let left = 1; left > 0; left--) {
    const head = headAt(bytes, at);
    if (head === OVER) return OVER;
    if (head.kind === "array") left += head.count;
    else if (head.kind === "object") left += head.count * 2;
    at = head.kind === "array" || head.kind === "object" ? head.at : head.at + head.count;
    if (at > bytes.length) return OVER;
  }
  return at;
}

const SCALARS: Readonly<Record<number, number>> = {
  192: 0,
  194: 0,
  195: 0,
  202: 4,
  203: 8,
  204: 1,
  205: 2,
  206: 4,
  207: 8,
  208: 1,
  209: 2,
  210: 4,
  211: 8,
};
/** The first byte of each kind whose length follows in one, two or four bytes. */
const COUNTED = [
  [0xc4, "binary", [1, 2, 4]],
  [0xc7, "extension", [1, 2, 4]],
  [0xd9, "text", [1, 2, 4]],
  [0xdc, "array", [2, 4]],
  [0xde, "object", [2, 4]],
] as const;

function headAt(bytes: Buffer, start: number): Head | typeof OVER {
  const first = bytes[start];
  const at = start + 1;
  if (first === undefined) return OVER;
  if (first < 0x80 || first >= 0xe0) return { kind: "scalar", at, count: 0 };
  if (first < 0x90) return { kind: "object", at, count: first & 0x0f };
  if (first < 0xa0) return { kind: "array", at, count: first & 0x0f };
  if (first < 0xc0) return { kind: "text", at, count: first & 0x1f };
  const scalar = SCALARS[first];
  if (scalar !== undefined) return { kind: "scalar", at, count: scalar };
  if (first >= 0xd4 && first <= 0xd8) return extensionHead(bytes, at, 1 << (first - 0xd4));
  for (const [base, kind, widths] of COUNTED) {
    const width = widths[first - base];
    if (width === undefined) continue;
    if (at + width > bytes.length) return OVER;
    const count = bytes.readUIntBE(at, width);
    return kind === "extension" ? extensionHead(bytes, at + width, count) : { kind, at: at + width, count };
  }
  throw damaged(`it contains the reserved byte 0x${first.toString(16)}`);
}

function extensionHead(bytes: Buffer, at: number, count: number): Head | typeof OVER {
  const type = bytes[at];
  return type === undefined ? OVER : { kind: "extension", at: at + 1, count, type };
}
