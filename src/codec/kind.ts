// Classifies an object by its internal slots where JavaScript exposes them, as structuredClone does. Proxies of plain
// objects, arrays and class instances are read through their traps; any other Proxy is refused.
import { types } from "../core/lazy-builtin.ts";

/**
 * `plain` and `object`: the own enumerable properties are the value, whatever the class. A `plain` object has no other
 * enumerable properties unless Object.prototype is polluted.
 */
export type Kind =
  | "plain"
  | "object"
  | "array"
  | "map"
  | "set"
  | "date"
  | "regexp"
  | "error"
  | "boxed"
  | "buffer"
  | "view"
  | "unsupported";

/** May throw whatever a Proxy or an accessor throws. */
export function kindOf(value: object): Kind {
  if (Array.isArray(value)) return "array";
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return "plain";
  if (ArrayBuffer.isView(value)) return "view";
  const tag = tagOf(value);
  if (tag === "Object") return hidesInternalState(value) ? "unsupported" : "object";
  return slottedKindOf(value) ?? (isPlatformTag(tag) ? "unsupported" : "object");
}

/** What `Object.prototype.toString` calls it, such as `Date`. */
export function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

function slottedKindOf(value: object): Kind | undefined {
  if (types.isDate(value)) return "date";
  if (types.isMap(value)) return "map";
  if (types.isSet(value)) return "set";
  if (types.isNativeError(value)) return "error";
  if (types.isRegExp(value)) return "regexp";
  if (types.isArrayBuffer(value)) return "buffer";
  if (types.isBoxedPrimitive(value)) return types.isSymbolObject(value) ? "unsupported" : "boxed";
  const refused =
    types.isProxy(value) ||
    types.isPromise(value) ||
    types.isWeakMap(value) ||
    types.isWeakSet(value) ||
    types.isSharedArrayBuffer(value) ||
    types.isGeneratorObject(value) ||
    types.isExternal(value);
  return refused ? "unsupported" : undefined;
}

/** A Proxy of a Date and the like: its properties are not its value, and its internal slots cannot be read. */
function hidesInternalState(value: object): boolean {
  const slotted =
    value instanceof Date ||
    value instanceof RegExp ||
    value instanceof Error ||
    value instanceof Number ||
    value instanceof String ||
    value instanceof Boolean;
  return slotted && types.isProxy(value);
}

/**
 * URL, Headers, Blob, WeakRef, Intl.DateTimeFormat, generators and other platform objects hide their state: storing their
 * properties would lose it silently.
 */
function isPlatformTag(tag: string): boolean {
  return (
    Object.hasOwn(globalThis, tag) ||
    PLATFORM_PREFIXES.some((prefix) => tag.startsWith(prefix)) ||
    PLATFORM_SUFFIXES.some((suffix) => tag.endsWith(suffix))
  );
}

const PLATFORM_PREFIXES = ["Intl.", "Temporal.", "WebAssembly."];
const PLATFORM_SUFFIXES = ["Iterator", "Generator", " Helper"];

/** The primitive inside a Number, String, Boolean or BigInt object, whatever its own valueOf returns. */
export function unbox(boxed: object): number | string | boolean | bigint {
  if (types.isNumberObject(boxed)) return Number.prototype.valueOf.call(boxed);
  if (types.isStringObject(boxed)) return String.prototype.valueOf.call(boxed);
  if (types.isBooleanObject(boxed)) return Boolean.prototype.valueOf.call(boxed);
  return BigInt.prototype.valueOf.call(boxed);
}
