// Estimates the memory a value keeps alive, closely enough to hold a cache to a byte limit.
//
// Up to a number of parts every one is weighed, so nothing large can hide between small ones. Beyond it a sample stands for
// the rest; each container is sampled from a random first part, so no order of parts escapes for long.
import { kindOf, unbox } from "./kind.ts";

// Approximate costs in V8 on a 64-bit machine.
const SLOT = 8;
const OBJECT = 24;
const STRING = 16;
const HASH_ENTRY = 40;
const DICTIONARY_ENTRY = 24;
const BINARY = 96;
const OTHER = 64;
/** Larger objects are dictionaries, which store their keys; smaller ones share the names with all objects of their shape. */
const SHAPED_KEYS = 32;
/** A longer name is unlikely to be shared. */
const SHARED_NAME = 32;
/** Small buffers are views of Node's shared pool, whose memory is not theirs; Node adds a little to the pool's size. */
const POOL_BYTES = Buffer.poolSize + 128;

/** Up to this many parts every one is weighed, in a few milliseconds. */
const MOST_PARTS = 100_000;
/** Beyond that only this many are, because objects then have to be remembered, so that shared ones count once. */
const SAMPLED_PARTS = 20_000;
/** While sampling, parts held back for each sibling of the current part, up to a share of all that are left. */
const PARTS_PER_SIBLING = 4;
const SIBLINGS_SHARE = 1 / 8;
/** The deepest nesting a codec allows. */
const MOST_LEVELS = 1_000;
/** Listing the keys of a larger object is slow (about 10 ms for 40,000), so it is done once per value. */
const KEYS_LISTED_ONCE = 1_000;

type KeyLists = Map<object, readonly string[]>;

/** Never throws: what cannot be read counts as an object. */
export function sizeOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return SLOT + primitiveBytes(value);
  const scale = new Scale(undefined);
  try {
    return SLOT + scale.weigh(value, 0, 0);
  } catch {
    return sampledSizeOf(value, scale.keyLists);
  }
}

/** For a value of too many parts to weigh each. */
export function sampledSizeOf(value: object, keyLists?: KeyLists): number {
  return SLOT + Math.round(new Scale(new Set(), keyLists).weigh(value, 0, 0));
}

/** A string with one of these takes two bytes per character. V8 scans only strings that it stores that way. */
const WIDE = /[\u0100-\uffff]/;
/** A text this short is mostly overhead, so its first character decides. */
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

/** Thrown by the first attempt at a value of more than `MOST_PARTS`. */
const TOO_MANY = new Error("too many parts to weigh each of them");

class Scale {
  #partsLeft: number;
  /** How many of them are held back for siblings of the objects the walk is in. */
  #reserved = 0;
  /** Objects that were weighed: another reference to one adds nothing. */
  readonly #weighed: Set<object> | undefined;
  /** Without that set, only the ancestors of the object being weighed, to end a cycle. */
  readonly #ancestors: object[] = [];
  keyLists: KeyLists | undefined;

  /** Without a set to remember objects in, it throws TOO_MANY instead of sampling. */
  constructor(weighed: Set<object> | undefined, keyLists?: KeyLists) {
    this.#weighed = weighed;
    this.keyLists = keyLists;
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
      const ancestors = this.#ancestors;
      for (let i = 0; i < level; i++) if (ancestors[i] === value) return true;
      ancestors[level] = value;
      // The comparisons count as work too.
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
        return OBJECT + this.#properties(value, this.#keysOf(value), level);
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

  #keysOf(value: object): readonly string[] {
    const known = this.keyLists?.get(value);
    if (known !== undefined) return known;
    const keys = Object.keys(value);
    if (keys.length > KEYS_LISTED_ONCE) {
      this.keyLists ??= new Map();
      this.keyLists.set(value, keys);
    }
    return keys;
  }

  #array(value: readonly unknown[], level: number): number {
    const { length } = value;
    const first = this.#first(length);
    if (length > this.#partsLeft && isSparse(value)) {
      return this.#properties(value, this.#keysOf(value), level);
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
    // From the first part to the end, then from the beginning up to it.
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

  /** The index to begin at. */
  #first(parts: number): number {
    if (this.#weighed !== undefined) return Math.floor(random() * parts);
    if (parts > this.#partsLeft) throw TOO_MANY;
    return 0;
  }

  /** Whether the budget is used up; the first part of each container is always weighed. */
  #isOver(seen: number): boolean {
    this.#partsLeft--;
    if (this.#weighed !== undefined) return this.#partsLeft < this.#reserved && seen > 0;
    if (this.#partsLeft < 0) throw TOO_MANY;
    return false;
  }
}

/** Whether a long array is mostly holes: it then has no slots for them. */
function isSparse(value: readonly unknown[]): boolean {
  for (let probe = 0; probe < 16; probe++) if (!(Math.floor(random() * value.length) in value)) return true;
  return false;
}

/** A view keeps its whole buffer alive, however small it is. */
function viewBytes(view: ArrayBufferView): number {
  const whole = view.buffer.byteLength;
  return whole > POOL_BYTES ? whole : view.byteLength;
}

let state = 0x2545_f491;

/** A number in [0, 1), by Marsaglia's xorshift: it only has to be independent of the order of the parts. */
function random(): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) / 2 ** 32;
}
