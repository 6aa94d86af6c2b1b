// A canonical text per value: equal values (by `util.isDeepStrictEqual`) have the same text, different values different
// ones. Object keys, Map entries and Set members are sorted, so their order does not matter; every string is quoted and
// every bracket closed, so no two structures share a text.
import { types } from "../core/lazy-builtin.ts";

/** A part that has no canonical text; `path` is its path from the root value, such as `.filter[2]`. */
export class Unencodable extends Error {
  readonly path: string;
  /** A description of the value at the path. */
  readonly reason: string;
  constructor(path: string, reason: string) {
    super(reason);
    this.path = path;
    this.reason = reason;
  }
}

const MAX_DEPTH = 200;
const LONGEST_SCANNED = 60;
/** Shared references can expand to more text than fits in memory, so the text is limited; no real key needs this much. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** The fixed cost of an object and of each of its parts. */
const OBJECT_CHARACTERS = 128;
const PART_CHARACTERS = 8;
const BARE_KEY = /^[A-Za-z_$][\w$]*$/;

type Step = string | number;

/** An object the walk is inside of, and the step that led into it. */
interface Level {
  readonly object: object;
  readonly step: Step;
  readonly outer: Level | undefined;
  readonly depth: number;
  readonly budget: Budget;
}

/** Approximately how many more characters the text may have. */
interface Budget {
  left: number;
}

/** Throws Unencodable. */
export function canonicalText(value: unknown): string {
  return textOf(value, undefined, 0);
}

export function numberText(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

/** As JSON, which also escapes lone surrogates: the text is always well-formed. */
function stringText(value: string): string {
  return isPlainText(value) ? `"${value}"` : JSON.stringify(value);
}

/** Whether it only needs quotes to be JSON; false for a long one, where JSON.stringify is faster than the scan. */
export function isPlainText(value: string): boolean {
  if (value.length > LONGEST_SCANNED) return false;
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i);
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) return false;
  }
  return true;
}

function textOf(value: unknown, outer: Level | undefined, step: Step): string {
  switch (typeof value) {
    case "string":
      if (outer !== undefined) take(outer, value.length);
      return stringText(value);
    case "number":
      return numberText(value);
    case "bigint":
      return `${value}n`;
    case "boolean":
    case "undefined":
      return String(value);
    case "object":
      return value === null ? "null" : objectText(value, outer, step);
    default:
      throw new Unencodable(pathTo(outer, step), `a ${typeof value}`);
  }
}

function objectText(object: object, outer: Level | undefined, step: Step): string {
  const level: Level = {
    object,
    step,
    outer,
    depth: outer === undefined ? 1 : outer.depth + 1,
    budget: outer === undefined ? { left: MAX_CHARACTERS } : outer.budget,
  };
  take(level, OBJECT_CHARACTERS);
  for (let above = outer; above !== undefined; above = above.outer) {
    if (above.object === object) refuse(level, "a reference to an object that contains it");
  }
  if (level.depth > MAX_DEPTH) refuse(level, `nested more than ${MAX_DEPTH} levels deep`);
  if (Array.isArray(object)) return arrayText(object, level);
  return isPlainObject(object) ? recordText(object, level) : instanceText(object, level);
}

function arrayText(array: readonly unknown[], level: Level): string {
  if (constructorName(array) !== "Array") refuse(level, instanceOf(array));
  take(level, PART_CHARACTERS * array.length);
  const parts: string[] = [];
  let present = 0;
  for (let i = 0; i < array.length; i++) {
    if (i in array) {
      parts.push(textOf(array[i], level, i));
      present++;
    } else {
      parts.push("empty");
    }
  }
  const keys = Object.keys(array);
  // Keys that are not indices come last.
  if (keys.length !== present)
    refuse(level, `an array with the extra property ${JSON.stringify(keys.at(-1))}`);
  return `[${parts.join(",")}]`;
}

function recordText(record: object, level: Level): string {
  refuseSymbols(record, level);
  const keys = Object.keys(record);
  take(level, PART_CHARACTERS * keys.length);
  if (!isSorted(keys)) keys.sort();
  let text = "{";
  for (const key of keys) {
    const part = textOf((record as Record<string, unknown>)[key], level, key);
    text += `${text === "{" ? "" : ","}${BARE_KEY.test(key) ? key : JSON.stringify(key)}:${part}`;
  }
  return `${text}}`;
}

function isSorted(keys: readonly string[]): boolean {
  for (let i = 1; i < keys.length; i++) if (keys[i - 1]! > keys[i]!) return false;
  return true;
}

/** Built-in classes are encoded by their content; a subclass may hold more than that, so it is rejected. */
function instanceText(value: object, level: Level): string {
  const kind = constructorName(value);
  if (ArrayBuffer.isView(value) && VIEWS.has(kind)) {
    take(level, value.byteLength);
    return bytesText(kind, value);
  }
  const text = builtInText(value, kind, level);
  if (text === undefined)
    refuse(level, types.isPromise(value) ? "a promise (await it first)" : instanceOf(value));
  const extra = Object.keys(value)[0];
  if (extra !== undefined) refuse(level, `a ${kind} with the extra property ${JSON.stringify(extra)}`);
  return text;
}

function builtInText(value: object, kind: string, level: Level): string | undefined {
  if (kind === "Date" && types.isDate(value)) return `Date(${value.getTime()})`;
  if (kind === "Map" && types.isMap(value)) return `Map{${entriesText(value, level)}}`;
  if (kind === "Set" && types.isSet(value)) return `Set{${membersText(value, level)}}`;
  if (kind === "RegExp" && types.isRegExp(value)) return regExpText(value);
  if (kind === "ArrayBuffer" && types.isArrayBuffer(value)) {
    take(level, value.byteLength);
    return bytesText(kind, new Uint8Array(value));
  }
  if (kind === "URL" && value instanceof URL) return `URL(${JSON.stringify(value.href)})`;
  return undefined;
}

function entriesText(map: ReadonlyMap<unknown, unknown>, level: Level): string {
  take(level, 2 * PART_CHARACTERS * map.size);
  const parts: string[] = [];
  for (const [key, value] of map) {
    parts.push(`${textOf(key, level, parts.length)}=>${textOf(value, level, parts.length)}`);
  }
  return parts.sort().join(",");
}

function membersText(set: ReadonlySet<unknown>, level: Level): string {
  take(level, PART_CHARACTERS * set.size);
  const parts: string[] = [];
  for (const member of set) parts.push(textOf(member, level, parts.length));
  return parts.sort().join(",");
}

/** `lastIndex` changes what a global or sticky expression matches, so it counts once it has moved. */
function regExpText({ source, flags, lastIndex }: RegExp): string {
  const moved = lastIndex === 0 ? "" : `,${numberText(lastIndex)}`;
  return `RegExp(${JSON.stringify(source)},${JSON.stringify(flags)}${moved})`;
}

const VIEWS = new Set([
  "Buffer",
  "DataView",
  "Uint8Array",
  "Uint8ClampedArray",
  "Int8Array",
  "Uint16Array",
  "Int16Array",
  "Uint32Array",
  "Int32Array",
  "BigUint64Array",
  "BigInt64Array",
  "Float16Array",
  "Float32Array",
  "Float64Array",
]);

function bytesText(kind: string, { buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return `${kind}(${Buffer.from(buffer, byteOffset, byteLength).toString("base64url")})`;
}

function refuseSymbols(record: object, level: Level): void {
  for (const symbol of Object.getOwnPropertySymbols(record)) {
    if (Object.getOwnPropertyDescriptor(record, symbol)?.enumerable) {
      refuse(level, `an object with a symbol as a key (${String(symbol)})`);
    }
  }
}

/** `{}`, also of another realm, or an object without a prototype. */
function isPlainObject(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf");
}

function constructorName(value: object): string {
  const made: unknown = Object.getPrototypeOf(value)?.constructor;
  return typeof made === "function" ? made.name : "";
}

function instanceOf(value: object): string {
  return `an instance of ${constructorName(value) || "a nameless class"}`;
}

function take(level: Level, characters: number): void {
  level.budget.left -= characters;
  if (level.budget.left < 0) throw new Unencodable("", "too large");
}

function refuse(level: Level, reason: string): never {
  throw new Unencodable(pathTo(level.outer, level.step), reason);
}

function pathTo(outer: Level | undefined, step: Step): string {
  if (outer === undefined) return "";
  const last =
    typeof step === "number" ? `[${step}]` : BARE_KEY.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
  return pathTo(outer.outer, outer.step) + last;
}
