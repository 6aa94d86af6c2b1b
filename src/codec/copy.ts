// Deep copies without encoding. The result equals decode(encode(value)).
import { bytesOfBuffer, ownBuffer, ownMemory, storedBytesOf, viewFrom, viewTypeOf } from "./binary-view.ts";
import { cloneAtSite } from "./clone-site.ts";
import { holes, isHole, isPrototypePolluted, presentIndexes, setOwn } from "./containers.ts";
import { Descent, refuse } from "./descent.ts";
import { errorFactsOf, errorFrom } from "./error-object.ts";
import { kindOf, unbox } from "./kind.ts";
import type { CodecLimits } from "./options.ts";

/** Throws WalkRefused, CodecError, or whatever an accessor of the value throws. */
export function copyChecked(value: unknown, limits: CodecLimits): unknown {
  if (value === undefined) refuse();
  return new Copier(new Descent(limits, value)).value(value, 0);
}

/** For an unchanged result of `copyChecked` or `decode`: it is not checked again. */
export function copyTrusted(value: unknown): unknown {
  return typeof value === "object" && value !== null ? trustedObject(value) : value;
}

class Copier {
  readonly #descent: Descent;
  readonly #polluted = isPrototypePolluted();

  constructor(descent: Descent) {
    this.#descent = descent;
  }

  value(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "object":
        return value === null ? null : this.#object(value, depth);
      case "string":
        this.#descent.count(value.length);
        return value;
      case "function":
      case "symbol":
        return refuse();
      default:
        return value;
    }
  }

  #object(value: object, depth: number): object {
    this.#descent.countObject();
    switch (kindOf(value)) {
      case "plain":
        return this.#polluted ? this.#properties(value, depth) : this.#plain(value, depth);
      case "object":
        return this.#properties(value, depth);
      case "array":
        return this.#array(value as unknown[], depth);
      case "map":
        return this.#map(value as Map<unknown, unknown>, depth);
      case "set":
        return this.#set(value as Set<unknown>, depth);
      case "error":
        return this.#error(value as Error, depth);
      case "date":
        return new Date(Date.prototype.getTime.call(value));
      case "regexp":
        return new RegExp((value as RegExp).source, (value as RegExp).flags);
      case "boxed":
        return Object(unbox(value));
      case "buffer":
        return this.#buffer(value as ArrayBuffer);
      case "view":
        return this.#view(value as ArrayBufferView);
      case "unsupported":
        return refuse();
    }
  }

  // for-in visits the own properties first and in order; nothing is inherited from an untouched Object.prototype.
  #plain(value: object, depth: number): object {
    this.#descent.enter(value, depth);
    const source = value as Record<string, unknown>;
    const copy: Record<string, unknown> = {};
    let bytes = 0;
    for (const key in source) {
      const part = source[key];
      bytes += key.length + 2;
      if (typeof part === "string") {
        bytes += part.length;
        setOwn(copy, key, part);
      } else setOwn(copy, key, typeof part === "number" ? part : this.value(part, depth + 1));
    }
    this.#descent.count(bytes);
    return copy;
  }

  #properties(value: object, depth: number): object {
    this.#descent.enter(value, depth);
    const keys = Object.keys(value);
    this.#descent.count(2 * keys.length);
    const copy: Record<string, unknown> = {};
    for (const key of keys) setOwn(copy, key, this.value((value as Record<string, unknown>)[key], depth + 1));
    return copy;
  }

  #array(value: readonly unknown[], depth: number): unknown[] {
    this.#descent.enter(value, depth);
    const { length } = value;
    const copy: unknown[] = [];
    let bytes = length;
    for (let i = 0; i < length; i++) {
      const part = value[i];
      if (part === undefined && isHole(value, i)) return this.#sparse(value, depth);
      if (typeof part === "string") {
        bytes += part.length;
        copy.push(part);
      } else copy.push(typeof part === "number" ? part : this.value(part, depth + 1));
    }
    this.#descent.count(bytes);
    return copy;
  }

  #sparse(value: readonly unknown[], depth: number): unknown[] {
    const indexes = presentIndexes(value);
    this.#descent.count(2 * indexes.length);
    const copy = holes(value.length);
    for (const index of indexes) copy[index] = this.value(value[index], depth + 1);
    return copy;
  }

  #map(value: Map<unknown, unknown>, depth: number): Map<unknown, unknown> {
    this.#descent.enter(value, depth);
    const copy = new Map<unknown, unknown>();
    Map.prototype.forEach.call(value, (part, key) => {
      this.#descent.count(2);
      const keyCopy = this.value(key, depth + 1);
      copy.set(keyCopy, this.value(part, depth + 1));
    });
    return copy;
  }

  #set(value: Set<unknown>, depth: number): Set<unknown> {
    this.#descent.enter(value, depth);
    const copy = new Set<unknown>();
    Set.prototype.forEach.call(value, (part) => {
      this.#descent.count(1);
      copy.add(this.value(part, depth + 1));
    });
    return copy;
  }

  #error(value: Error, depth: number): Error {
    this.#descent.enter(value, depth);
    const facts = errorFactsOf(value);
    this.#descent.count(facts.stack?.length ?? 0);
    return errorFrom({ ...facts, cause: this.value(facts.cause, depth + 1) });
  }

  #buffer(value: ArrayBuffer): ArrayBuffer {
    const bytes = bytesOfBuffer(value);
    this.#descent.count(bytes.length);
    return ownMemory(bytes);
  }

  #view(value: ArrayBufferView): ArrayBufferView {
    const type = viewTypeOf(value);
    const bytes = storedBytesOf(value, type);
    this.#descent.count(bytes.length);
    return Buffer.isBuffer(value) ? ownBuffer(bytes) : (viewFrom(type, bytes) as ArrayBufferView);
  }
}

const UNBOUNDED: CodecLimits = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: Number.MAX_SAFE_INTEGER };
/** Longer arrays may have many holes, which `slice` would visit one by one. */
const SLICED_LENGTH = 1024;

function trustedObject(value: object): object {
  if (Array.isArray(value)) return trustedArray(value);
  if (Object.getPrototypeOf(value) === Object.prototype)
    return trustedPlain(value as Record<string, unknown>);
  return copyUnbounded(value) as object;
}

function copyUnbounded(value: object): unknown {
  return new Copier(new Descent(UNBOUNDED, undefined)).value(value, 0);
}

function trustedPlain(value: Record<string, unknown>): Record<string, unknown> {
  let hash = 0;
  let nested = false;
  for (const key in value) {
    const part = value[key];
    if (typeof part === "object" && part !== null) nested = true;
    hash = (Math.imul(hash, 31) + key.length + key.charCodeAt(0) + key.charCodeAt(key.length - 1)) | 0;
  }
  const copy = cloneAtSite(hash ^ (hash >>> 5), value);
  if (nested) {
    for (const key in copy) {
      const part = copy[key];
      // An own `__proto__` exists in the copy already, so this assignment does not reach the accessor.
      if (typeof part === "object" && part !== null && Object.hasOwn(copy, key))
        copy[key] = trustedObject(part);
    }
  }
  return copy;
}

function trustedArray(value: readonly unknown[]): unknown[] {
  if (value.length > SLICED_LENGTH) return copyUnbounded(value) as unknown[];
  const copy = value.slice();
  for (let i = 0; i < copy.length; i++) {
    const part = copy[i];
    if (typeof part === "object" && part !== null) copy[i] = trustedObject(part);
  }
  return copy;
}
