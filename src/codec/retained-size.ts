// A guess at the memory a value keeps alive: near enough to hold a cache to a byte limit.
//
// Every part is weighed, so that nothing large can hide between small ones. Only where there are very many, the rest is
// judged by those that were weighed; the first of them is drawn at random, so that no order of parts escapes for long.
import { unbox } from "./boxed-primitive.ts";
import { kindOf } from "./kind.ts";

// What V8 spends on a 64-bit machine, to the nearest handful.
const SLOT = 8;
const OBJECT = 24;
const STRING = 16;
const HASH_ENTRY = 40;
const DICTIONARY_ENTRY = 24;
const BINARY = 96;
const OTHER = 64;
/** Larger objects are dictionaries, which store their keys; the names of small ones are shared by all of their shape. */
const SHAPED_KEYS = 32;
/** A longer name is hardly shared. */
const SHARED_NAME = 32;
/** Small buffers are windows into a pool, which is not theirs; Node adds a little to its size. */
const POOL_BYTES = Buffer.poolSize + 128;

/** Up to so many parts all of them are weighed, in a few milliseconds. */
const MOST_PARTS = 100_000;
/** Where there are more, so many are; then objects have to be remembered, so that shared ones count once. */
const SAMPLED_PARTS = 20_000;
/** Of those that may still be weighed then, so many are left to each sibling of a part, but to all of them no more than a share. */
const PARTS_PER_SIBLING = 4;
const SIBLINGS_SHARE = 1 / 8;
/** As deep as a codec can be told to go. */
const MOST_LEVELS = 1_000;

/** Never throws: what cannot be read counts as an object. */
export function sizeOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return SLOT + primitiveBytes(value);
  try {
    return SLOT + new Scale(undefined).weigh(value, 0, 0);
  } catch {
    return SLOT + Math.round(new Scale(new Set()).weigh(value, 0, 0));
  }
}

/** A string with one of these takes two bytes a character. V8 looks for it only in strings that are kept that way. */
const WIDE = /[\u0100-\uffff]/;
/** Of so short a text most is overhead, and its first character tells enough. */
const SHORT_TEXT = 24;

function textBytes(text: string): number {
  const { length } = text;
  const isWide = length > SHORT_TEXT ? WIDE.test(text) : text.charCodeAt(0) > 0xff;
  return STRING + (isWide ? 2 * length : length);
}

function primitiveBytes(value: unknown): number {
  switch (typeof value) {
    case "string":
      return textBytes(value);
    case "number":
      return value >> 0 === value ? 0 : SLOT;
    case "bigint":
      return STRING + (BigInt.asIntN(64, value) === value ? SLOT : value.toString(32).length);
    default:
      return 0;
  }
}

/** Thrown inside the first attempt at a value of more than `MOST_PARTS`. */
const TOO_MANY = new Error("There are too many parts to weigh all of them.");

class Scale {
  #partsLeft: number;
  /** What must be left of them where the walk is. */
  #reserved = 0;
  /** What was weighed: a second reference to it weighs nothing more. */
  readonly #weighed: Set<object> | undefined;
  /** The same while nothing is remembered: only what leads back to an object above the one being weighed is known. */
  readonly #above: object[] = [];

  /** Without a set to remember objects in, it throws TOO_MANY rather than judge some parts by others. */
  constructor(weighed: Set<object> | undefined) {
    this.#weighed = weighed;
    this.#partsLeft = weighed === undefined ? MOST_PARTS : SAMPLED_PARTS;
  }

  /** Bytes beyond the slot that refers to it. */
  weigh(value: object, level: number, siblings: number): number {
    if (level === MOST_LEVELS) return OTHER;
    if (this.#isKnown(value, level)) return 0;
    const reserved = this.#reserved;
    if (this.#weighed !== undefined) this.#reserve(siblings);
    try {
      return this.#object(value, level + 1);
    } catch (thrown) {
      if (thrown === TOO_MANY) throw thrown;
      return OTHER;
    } finally {
      this.#reserved = reserved;
    }
  }

  #isKnown(value: object, level: number): boolean {
    const weighed = this.#weighed;
    if (weighed === undefined) {
      const above = this.#above;
      for (let i = 0; i < level; i++) if (above[i] === value) return true;
      above[level] = value;
      // The comparisons are work as well.
      this.#partsLeft -= level >> 3;
      return false;
    }
    if (weighed.has(value)) return true;
    weighed.add(value);
    return false;
  }

  /** `siblings`: how many parts of the same object are still to be weighed. */
  #part(value: unknown, level: number, siblings: number): number {
    if (typeof value === "string") return textBytes(value);
    if (typeof value === "object" && value !== null) return this.weigh(value, level, siblings);
    return primitiveBytes(value);
  }

  #reserve(siblings: number): void {
    const share = Math.floor((this.#partsLeft - this.#reserved) * SIBLINGS_SHARE);
    this.#reserved += Math.max(0, Math.min(share, siblings * PARTS_PER_SIBLING));
  }

  #object(value: object, level: number): number {
    switch (kindOf(value)) {
      case "array":
        return OBJECT + this.#array(value as unknown[], level);
      case "plain":
      case "object":
        return OBJECT + this.#properties(value, Object.keys(value), level);
      case "map":
        return OTHER + this.#map(value as Map<unknown, unknown>, level);
      case "set":
        return OTHER + this.#set(value as Set<unknown>, level);
      case "buffer":
        return BINARY + (value as ArrayBuffer).byteLength;
      case "view":
        return BINARY + viewBytes(value as ArrayBufferView);
      case "error":
        return OTHER + this.#error(value as Error, level);
      case "regexp":
        return OTHER + textBytes((value as RegExp).source);
      case "boxed":
        return OTHER + primitiveBytes(unbox(value));
      default:
        return OTHER;
    }
  }

  #array(value: readonly unknown[], level: number): number {
    const { length } = value;
    const first = this.#first(length);
    if (length > this.#partsLeft && isSparse(value)) {
      return this.#properties(value, Object.keys(value), level);
    }
    let total = 0;
    for (let seen = 0; seen < length; seen++) {
      if (this.#isOver(seen)) return (total / seen) * length;
      const index = seen + first < length ? seen + first : seen + first - length;
      const part = value[index];
      if (part !== undefined || index in value) total += SLOT + this.#part(part, level, length - seen);
    }
    return total;
  }

  #properties(value: object, keys: readonly string[], level: number): number {
    const { length } = keys;
    const isDictionary = length > SHAPED_KEYS;
    const first = this.#first(length);
    let total = 0;
    for (let seen = 0; seen < length; seen++) {
      if (this.#isOver(seen)) return (total / seen) * length;
      const key = keys[seen + first < length ? seen + first : seen + first - length]!;
      total += isDictionary ? DICTIONARY_ENTRY : SLOT;
      if (isDictionary || key.length > SHARED_NAME) total += textBytes(key);
      total += this.#part((value as Record<string, unknown>)[key], level, length - seen);
    }
    return total;
  }

  #map(value: Map<unknown, unknown>, level: number): number {
    return this.#entries(value.size, () => Map.prototype.entries.call(value), level);
  }

  #set(value: Set<unknown>, level: number): number {
    return this.#entries(value.size, () => Set.prototype.entries.call(value), level);
  }

  #entries(size: number, open: () => Iterable<[unknown, unknown]>, level: number): number {
    const first = this.#first(size);
    let total = 0;
    let seen = 0;
    // From the first one to the end, then from the beginning to there.
    for (const from of first === 0 ? [0] : [first, 0]) {
      let at = 0;
      for (const [key, part] of open()) {
        if (at++ < from) continue;
        if (seen === size) break;
        if (this.#isOver(seen)) return (total / seen) * size;
        total += HASH_ENTRY + this.#part(key, level, size - seen);
        if (key !== part) total += this.#part(part, level, size - seen);
        seen++;
      }
    }
    return total;
  }

  #error(value: Error, level: number): number {
    return this.#part(value.stack, level, 1) + this.#part(value.cause, level, 0);
  }

  /** Where to begin among so many parts. */
  #first(parts: number): number {
    if (this.#weighed !== undefined) return Math.floor(random() * parts);
    if (parts > this.#partsLeft) throw TOO_MANY;
    return 0;
  }

  /** Whether no part can be weighed any more; the first of each container always is. */
  #isOver(seen: number): boolean {
    this.#partsLeft--;
    if (this.#weighed !== undefined) return this.#partsLeft < this.#reserved && seen > 0;
    if (this.#partsLeft < 0) throw TOO_MANY;
    return false;
  }
}

/** Whether a long array has places for much that is not there; it keeps no slots for its holes then. */
function isSparse(value: readonly unknown[]): boolean {
  for (let probe = 0; probe < 16; probe++) if (!(Math.floor(random() * value.length) in value)) return true;
  return false;
}

/** A buffer keeps all its memory alive, however small the view of it. */
function viewBytes(view: ArrayBufferView): number {
  const whole = view.buffer.byteLength;
  return whole > POOL_BYTES ? whole : view.byteLength;
}

let state = 0x2545_f491;

/** A number in [0, 1), by Marsaglia's xorshift. It need not be secret, only out of step with what is weighed. */
function random(): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) / 2 ** 32;
}
