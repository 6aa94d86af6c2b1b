// Decodes MessagePack. Runs no code of the payload, changes no prototype, and allocates in proportion to the input.
import { CodecError } from "../core/errors.ts";
import { ownBuffer, ownMemory, viewFrom } from "./binary-view.ts";
import { ByteReader, damaged } from "./byte-reader.ts";
import { holes, setOwn } from "./containers.ts";
import { errorFrom } from "./error-object.ts";
import type { CodecLimits } from "./options.ts";
import { EXTENSION, LAST_VIEW } from "./payload-format.ts";

// Decoding runs no foreign code, so it is never re-entered and can share its state.
const reader = new ByteReader();
let latest: Decoder | undefined;

/** Throws CodecError for bytes that are damaged or nested too deep. */
export function decode(bytes: Uint8Array, limits: CodecLimits, start = 0, end = bytes.length): unknown {
  reader.start(bytes, start, end);
  try {
    if (latest?.maxDepth !== limits.maxDepth) latest = new Decoder(limits.maxDepth);
    const value = latest.value(0);
    if (reader.left !== 0) throw damaged(`${reader.left} bytes follow its end`);
    return value;
  } finally {
    reader.stop();
  }
}

class Decoder {
  readonly maxDepth: number;

  constructor(maxDepth: number) {
    this.maxDepth = maxDepth;
  }

  value(depth: number): unknown {
    const head = reader.byte();
    if (head < 0x80) return head;
    if (head < 0x90) return this.#object(head & 0x0f, depth);
    if (head < 0xa0) return this.#array(head & 0x0f, depth);
    if (head < 0xc0) return reader.text(head & 0x1f);
    if (head >= 0xe0) return head - 0x100;
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
        return ownBuffer(reader.binary(reader.byte()));
      case 0xc5:
        return ownBuffer(reader.binary(reader.uint16()));
      case 0xc6:
        return ownBuffer(reader.binary(reader.uint32()));
      case 0xc7:
        return this.#extension(reader.byte(), depth);
      case 0xc8:
        return this.#extension(reader.uint16(), depth);
      case 0xc9:
        return this.#extension(reader.uint32(), depth);
      case 0xca:
        return reader.float32();
      case 0xcb:
        return reader.float64();
      case 0xcc:
        return reader.byte();
      case 0xcd:
        return reader.uint16();
      case 0xce:
        return reader.uint32();
      case 0xcf:
        return reader.bigUint64();
      case 0xd0:
        return (reader.byte() << 24) >> 24;
      case 0xd1:
        return (reader.uint16() << 16) >> 16;
      case 0xd2:
        return reader.uint32() | 0;
      case 0xd3:
        return reader.bigInt64();
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#extension(1 << (head - 0xd4), depth);
      case 0xd9:
        return reader.text(reader.byte());
      case 0xda:
        return reader.text(reader.uint16());
      case 0xdb:
        return reader.text(reader.uint32());
      case 0xdc:
        return this.#array(reader.uint16(), depth);
      case 0xdd:
        return this.#array(reader.uint32(), depth);
      case 0xde:
        return this.#object(reader.uint16(), depth);
      case 0xdf:
        return this.#object(reader.uint32(), depth);
      default:
        throw damaged(`it contains the reserved byte 0x${head.toString(16)}`);
    }
  }

  #object(count: number, depth: number): Record<string, unknown> {
    this.#enter(depth, count * 2);
    const object: Record<string, unknown> = {};
    for (let i = 0; i < count; i++) {
      const key = this.#key();
      setOwn(object, key, this.value(depth + 1));
    }
    return object;
  }

  #key(): string {
    const head = reader.byte();
    if (head >= 0xa0 && head < 0xc0) return reader.key(head & 0x1f);
    if (head === 0xd9) return reader.key(reader.byte());
    if (head === 0xda) return reader.text(reader.uint16());
    if (head === 0xdb) return reader.text(reader.uint32());
    const length = extensionLength(head);
    if (length === undefined || reader.byte() !== EXTENSION.text16)
      throw damaged("an object key is not a string");
    return reader.text16(length);
  }

  #array(count: number, depth: number): unknown[] {
    this.#enter(depth, count);
    const array: unknown[] = [];
    for (let i = 0; i < count; i++) array.push(this.value(depth + 1));
    return array;
  }

  /** Refuses an impossible container before allocating anything: every part takes at least one byte. */
  #enter(depth: number, parts: number): void {
    if (depth >= this.maxDepth) {
      throw new CodecError(
        "VALUE_TOO_LARGE",
        `A stored value is nested deeper than ${this.maxDepth}, the limit.`,
      );
    }
    if (parts > reader.left) throw damaged(`it claims ${parts} parts with ${reader.left} bytes left`);
  }

  #extension(length: number, depth: number): unknown {
    const type = reader.byte();
    if (length > reader.left) throw damaged(`it claims ${length} bytes with ${reader.left} left`);
    switch (type) {
      case EXTENSION.undefined:
        reader.binary(length);
        return undefined;
      case EXTENSION.text16:
        return reader.text16(length);
      case EXTENSION.bigint:
        return bigintFrom(reader.binary(length));
      case EXTENSION.date:
        return new Date(this.#exactly(length, () => reader.float64()));
      case EXTENSION.arrayBuffer:
        return ownMemory(reader.binary(length));
      case EXTENSION.regexp:
        return this.#exactly(length, () => this.#regexp(depth));
      case EXTENSION.map:
        return this.#exactly(length, () => this.#map(depth));
      case EXTENSION.set:
        return this.#exactly(length, () => new Set(this.#array(this.#arrayCount(), depth)));
      case EXTENSION.sparse:
        return this.#exactly(length, () => this.#sparse(depth));
      case EXTENSION.error:
        return this.#exactly(length, () => this.#error(depth));
      case EXTENSION.boxed:
        return this.#exactly(length, () => this.#boxed());
      default:
        return type >= EXTENSION.firstView && type <= LAST_VIEW ? view(type, length) : unknownExtension(type);
    }
  }

  #exactly<T>(length: number, read: () => T): T {
    const end = reader.position + length;
    const value = read();
    if (reader.position !== end) throw damaged("the length of an extension does not match its content");
    return value;
  }

  #regexp(depth: number): RegExp {
    const parts = this.#array(this.#arrayCount(), depth);
    const [source, flags] = parts;
    if (parts.length !== 2 || typeof source !== "string" || typeof flags !== "string") {
      throw damaged("a RegExp is not a source and flags");
    }
    try {
      return new RegExp(source, flags);
    } catch (cause) {
      throw damaged("a RegExp does not compile here", cause);
    }
  }

  #map(depth: number): Map<unknown, unknown> {
    const head = reader.byte();
    const count =
      head >> 4 === 8 ? head & 0x0f : head === 0xde ? reader.uint16() : head === 0xdf ? reader.uint32() : -1;
    if (count < 0) throw damaged("a Map contains no map");
    this.#enter(depth, count * 2);
    const map = new Map<unknown, unknown>();
    for (let i = 0; i < count; i++) {
      const key = this.value(depth + 1);
      map.set(key, this.value(depth + 1));
    }
    return map;
  }

  #arrayCount(): number {
    const head = reader.byte();
    if (head >> 4 === 9) return head & 0x0f;
    if (head === 0xdc) return reader.uint16();
    if (head === 0xdd) return reader.uint32();
    throw damaged("an extension contains no array");
  }

  #sparse(depth: number): unknown[] {
    const count = this.#arrayCount();
    this.#enter(depth, count);
    const length = count % 2 === 1 ? this.value(depth + 1) : undefined;
    if (!isIndex(length, 2 ** 32)) throw damaged("an array with holes has no length");
    const array = holes(length);
    let least = 0;
    for (let i = 1; i < count; i += 2) {
      const index = this.value(depth + 1);
      if (!isIndex(index, length) || index < least)
        throw damaged("an array with holes has an index out of order");
      array[index] = this.value(depth + 1);
      least = index + 1;
    }
    return array;
  }

  #error(depth: number): Error {
    const count = this.#arrayCount();
    this.#enter(depth, count);
    const name = this.value(depth + 1);
    const message = this.value(depth + 1);
    const stack = this.value(depth + 1);
    const textual = (part: unknown): part is string | undefined =>
      part === undefined || typeof part === "string";
    if ((count !== 3 && count !== 4) || typeof name !== "string" || !textual(message) || !textual(stack)) {
      throw damaged("an Error is not a name, a message and a stack");
    }
    return errorFrom({
      name,
      message,
      stack,
      hasCause: count === 4,
      cause: count === 4 ? this.value(depth + 1) : undefined,
    });
  }

  #boxed(): object {
    const primitive = this.value(this.maxDepth);
    if (primitive === null || primitive === undefined || typeof primitive === "object") {
      throw damaged("a boxed primitive contains none");
    }
    return Object(primitive);
  }
}

function extensionLength(head: number): number | undefined {
  if (head >= 0xd4 && head <= 0xd8) return 1 << (head - 0xd4);
  if (head === 0xc7) return reader.byte();
  if (head === 0xc8) return reader.uint16();
  return head === 0xc9 ? reader.uint32() : undefined;
}

function isIndex(value: unknown, below: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < below;
}

function bigintFrom(content: Buffer): bigint {
  if (content.length < 2) throw damaged("a bigint has no digits");
  const magnitude = BigInt(`0x${content.toString("hex", 1)}`);
  return content[0] === 0 ? magnitude : -magnitude;
}

function view(type: number, length: number): ArrayBufferView {
  const made = viewFrom(type - EXTENSION.firstView, reader.binary(length));
  if (made === undefined)
    throw damaged(`a typed array of type ${type} cannot be made here from ${length} bytes`);
  return made;
}

function unknownExtension(type: number): never {
  throw new CodecError(
    "FRAME_VERSION",
    `Extension ${type} in a payload is unknown to this version of xcache.`,
  );
}
