// A guess at the memory a value keeps alive: near enough to hold a cache to a byte limit, cheap on large values.
import { kindOf } from "./kind.ts";

// What V8 spends on a 64-bit machine, to the nearest handful.
const SLOT = 8;
const OBJECT = 24;
const STRING = 16;
const HASH_ENTRY = 40;
const BINARY = 96;
const OTHER = 64;
/** Containers with more parts are judged by this many of them. */
const SAMPLE = 32;
/** A deep or widely shared value ends the walk at one of these. */
const MOST_OBJECTS = 20_000;
const MOST_LEVELS = 100;

/** Never throws: what cannot be read counts as an object. */
export function sizeOf(value: unknown): number {
  return SLOT + new Scale().weigh(value, 0);
}

class Scale {
  #objectsLeft = MOST_OBJECTS;
  /** The objects above the one being weighed: what leads back to them weighs nothing more. */
  readonly #above: object[] = [];

  /** Bytes beyond the slot that refers to it. */
  weigh(value: unknown, level: number): number {
    if (typeof value === "string") return STRING + value.length;
    if (typeof value === "number") return value >> 0 === value ? 0 : SLOT;
    if (typeof value === "bigint") return STRING + bigintBytes(value);
    if (typeof value !== "object" || value === null) return 0;
    if (level === MOST_LEVELS || this.#objectsLeft-- <= 0) return OTHER;
    for (let i = 0; i < level; i++) if (this.#above[i] === value) return 0;
    this.#above[level] = value;
    try {
      return this.#object(value, level + 1);
    } catch {
      return OTHER;
    }
  }

  #object(value: object, level: number): number {
    switch (kindOf(value)) {
      case "array":
        return OBJECT + this.#array(value as unknown[], level);
      case "plain":
      case "object":
        return OBJECT + this.#properties(value, level);
      case "map":
        return OTHER + this.#entries(value as Map<unknown, unknown>, level);
      case "set":
        return OTHER + this.#entries(value as Set<unknown>, level);
      case "buffer":
        return BINARY + (value as ArrayBuffer).byteLength;
      case "view":
        return BINARY + (value as ArrayBufferView).byteLength;
      case "error":
        return OTHER + this.weigh((value as Error).stack, level) + this.weigh((value as Error).cause, level);
      default:
        return OTHER;
    }
  }

  #array(value: readonly unknown[], level: number): number {
    const { length } = value;
    const stride = Math.max(1, length / SAMPLE);
    let total = 0;
    for (let place = 0; place < length; place += stride) {
      const index = Math.floor(place);
      // A sparse array keeps no slots for its holes.
      if (index in value) total += SLOT + this.weigh(value[index], level);
    }
    return total * stride;
  }

  #properties(value: object, level: number): number {
    const keys = Object.keys(value);
    const stride = Math.max(1, keys.length / SAMPLE);
    // Large objects are dictionaries, which store the keys; the names of small ones are shared by all of their shape.
    const perKey = keys.length > SAMPLE ? 3 * SLOT + STRING : SLOT;
    let total = 0;
    for (let place = 0; place < keys.length; place += stride) {
      total += perKey + this.weigh((value as Record<string, unknown>)[keys[Math.floor(place)]!], level);
    }
    return total * stride;
  }

  #entries(value: Map<unknown, unknown> | Set<unknown>, level: number): number {
    let seen = 0;
    let total = 0;
    for (const [key, part] of value.entries()) {
      total += HASH_ENTRY + this.weigh(key, level) + (key === part ? 0 : this.weigh(part, level));
      if (++seen === SAMPLE) break;
    }
    return seen === 0 ? 0 : (total / seen) * value.size;
  }
}

function bigintBytes(value: bigint): number {
  return BigInt.asIntN(64, value) === value ? SLOT : value.toString(32).length;
}
