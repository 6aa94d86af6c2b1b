// Encodes a value as MessagePack: plain data in the standard forms, everything else as the extensions of payload-format.ts.
import type { PayloadSlice } from "../core/codec.ts";
import { bytesOfBuffer, storedBytesOf, viewTypeOf } from "./binary-view.ts";
import { ByteWriter } from "./byte-writer.ts";
import { isHole, isPrototypePolluted, presentIndexes } from "./containers.ts";
import { Descent, refuse } from "./descent.ts";
import { errorFactsOf } from "./error-object.ts";
import { kindOf, unbox } from "./kind.ts";
import type { CodecLimits } from "./options.ts";
import { EXTENSION } from "./payload-format.ts";

let idleWriter: ByteWriter | undefined = new ByteWriter();

/** Throws WalkRefused, CodecError, or whatever an accessor of the value throws. */
export function encode(value: unknown, limits: CodecLimits): Buffer {
  return written(value, limits, COPIED) as Buffer;
}

/** As `encode`, as a payload of this format: small ones share memory, which costs less than a buffer for each. */
export function encodePayload(value: unknown, limits: CodecLimits, format: number): PayloadSlice {
  return written(value, limits, format) as PayloadSlice;
}

/** No format of a payload. */
const COPIED = -1;

function written(value: unknown, limits: CodecLimits, format: number): Buffer | PayloadSlice {
  // An accessor of the value may call a cache: the shared writer is then in use, and that call gets its own.
  const writer = idleWriter ?? new ByteWriter();
  idleWriter = undefined;
  try {
    writer.start(limits);
    if (value === undefined) refuse();
    new Encoder(writer, new Descent(limits, value)).value(value, 0);
    return format === COPIED ? writer.finish() : writer.finishPayload(format);
  } finally {
    idleWriter = writer;
  }
}

class Encoder {
  readonly #out: ByteWriter;
  readonly #descent: Descent;
  readonly #polluted = isPrototypePolluted();

  constructor(out: ByteWriter, descent: Descent) {
    this.#out = out;
    this.#descent = descent;
  }

  value(value: unknown, depth: number): void {
    // Compared one by one, V8 tests for each type; a switch would make the name of the type first.
    if (typeof value === "string") this.#out.text(value);
    else if (typeof value === "number") this.#out.number(value);
    else if (typeof value === "object" && value !== null) this.#object(value, depth);
    else this.#primitive(value);
  }

  #primitive(value: unknown): void {
    switch (typeof value) {
      case "boolean":
        this.#out.boolean(value);
        break;
      case "undefined":
        this.#out.undefined();
        break;
      case "bigint":
        this.#out.bigint(value);
        break;
      case "object":
        this.#out.nil();
        break;
      default:
        refuse();
    }
  }

  #object(value: object, depth: number): void {
    this.#descent.countObject();
    switch (kindOf(value)) {
      case "plain":
        if (this.#polluted) this.#properties(value, depth);
        else this.#plain(value, depth);
        break;
      case "object":
        this.#properties(value, depth);
        break;
      case "array":
        this.#array(value as unknown[], depth);
        break;
      case "map":
        this.#map(value as Map<unknown, unknown>, depth);
        break;
      case "set":
        this.#set(value as Set<unknown>, depth);
        break;
      case "date":
        this.#out.floatExtension(EXTENSION.date, Date.prototype.getTime.call(value));
        break;
      case "regexp":
        this.#regexp(value as RegExp);
        break;
      case "error":
        this.#error(value as Error, depth);
        break;
      case "boxed":
        this.#boxed(value);
        break;
      case "buffer":
        this.#out.extension(EXTENSION.arrayBuffer, bytesOfBuffer(value as ArrayBuffer));
        break;
      case "view":
        this.#view(value as ArrayBufferView);
        break;
      case "unsupported":
        refuse();
    }
  }

  // for-in visits the own properties first and in order; nothing is inherited from an untouched Object.prototype.
  #plain(value: object, depth: number): void {
    const out = this.#out;
    const record = value as Record<string, unknown>;
    this.#descent.enter(value, depth);
    const opened = out.openMap();
    let count = 0;
    for (const key in record) {
      out.text(key);
      this.value(record[key], depth + 1);
      count++;
    }
    out.closeMap(opened, count);
  }

  #properties(value: object, depth: number): void {
    const keys = Object.keys(value);
    this.#descent.enter(value, depth);
    this.#out.mapHeader(keys.length);
    for (const key of keys) {
      this.#out.text(key);
      this.value((value as Record<string, unknown>)[key], depth + 1);
    }
  }

  #array(value: readonly unknown[], depth: number): void {
    const { length } = value;
    this.#descent.enter(value, depth);
    const start = this.#out.position;
    this.#out.arrayHeader(length);
    for (let i = 0; i < length; i++) {
      const item = value[i];
      if (item === undefined && isHole(value, i)) {
        this.#out.rewind(start);
        this.#sparse(value, depth);
        return;
      }
      this.value(item, depth + 1);
    }
  }

  #sparse(value: readonly unknown[], depth: number): void {
    const indexes = presentIndexes(value);
    const opened = this.#out.openExtension(EXTENSION.sparse);
    this.#out.arrayHeader(1 + 2 * indexes.length);
    this.#out.number(value.length);
    for (const index of indexes) {
      this.#out.number(index);
      this.value(value[index], depth + 1);
    }
    this.#out.closeExtension(opened);
  }

  #map(value: Map<unknown, unknown>, depth: number): void {
    this.#descent.enter(value, depth);
    const opened = this.#out.openExtension(EXTENSION.map);
    const header = this.#out.openMap();
    let count = 0;
    Map.prototype.forEach.call(value, (item, key) => {
      this.value(key, depth + 1);
      this.value(item, depth + 1);
      count++;
    });
    this.#out.closeMap(header, count);
    this.#out.closeExtension(opened);
  }

  #set(value: Set<unknown>, depth: number): void {
    // A snapshot: the count is written first and must hold even if an accessor changes the set meanwhile.
    const items: unknown[] = [];
    Set.prototype.forEach.call(value, (item) => items.push(item));
    this.#descent.enter(value, depth);
    const opened = this.#out.openExtension(EXTENSION.set);
    this.#out.arrayHeader(items.length);
    for (const item of items) this.value(item, depth + 1);
    this.#out.closeExtension(opened);
  }

  #regexp(value: RegExp): void {
    const opened = this.#out.openExtension(EXTENSION.regexp);
    this.#out.arrayHeader(2);
    this.#out.text(value.source);
    this.#out.text(value.flags);
    this.#out.closeExtension(opened);
  }

  #error(value: Error, depth: number): void {
    this.#descent.enter(value, depth);
    const facts = errorFactsOf(value);
    const opened = this.#out.openExtension(EXTENSION.error);
    this.#out.arrayHeader(facts.hasCause ? 4 : 3);
    this.#out.text(facts.name);
    this.value(facts.message, depth);
    this.value(facts.stack, depth);
    if (facts.hasCause) this.value(facts.cause, depth + 1);
    this.#out.closeExtension(opened);
  }

  #boxed(value: object): void {
    const opened = this.#out.openExtension(EXTENSION.boxed);
    this.value(unbox(value), 0);
    this.#out.closeExtension(opened);
  }

  #view(value: ArrayBufferView): void {
    const type = viewTypeOf(value);
    const bytes = storedBytesOf(value, type);
    if (Buffer.isBuffer(value)) this.#out.binary(bytes);
    else this.#out.extension(EXTENSION.firstView + type, bytes);
  }
}
