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
const SAMPLE = 64;
/** A cyclic or widely shared value ends the walk here. */
const MOST_OBJECTS = 20_000;

/** Never throws: what cannot be read counts as an object. */
export function sizeOf(value: unknown): number {
  return SLOT + new Scale().weigh(value);
}

class Scale {
  #objectsLeft = MOST_OBJECTS;

  /** Bytes beyond the slot that refers to it. */
  weigh(value: unknown): number {
    if (typeof value === "string") return STRING + value.length;
    if (typeof value === "number") return value >> 0 === value ? 0 : SLOT;
    if (typeof value === "bigint") return STRING + bigintBytes(value);
    if (typeof value !== "object" || value === null || this.#objectsLeft-- <= 0) return 0;
    try {
      return this.#object(value);
    } catch {
      return OTHER;
    }
  }

  #object(value: object): number {
    switch (kindOf(value)) {
      case "array":
        return OBJECT + this.#array(value as unknown[]);
      case "plain":
      case "object":
        return OBJECT + this.#properties(value);
      case "map":
        return OTHER + this.#entries(value as Map<unknown, unknown>);
      case "set":
        return OTHER + this.#entries(value as Set<unknown>);
      case "buffer":
        return BINARY + (value as ArrayBuffer).byteLength;
      case "view":
        return BINARY + (value as ArrayBufferView).byteLength;
      case "error":
        return OTHER + this.weigh((value as Error).stack) + this.weigh((value as Error).cause);
      default:
        return OTHER;
    }
  }

  #array(value: readonly unknown[]): number {
    const { length } = value;
    if (length <= SAMPLE) return this.#sum(length, (i) => SLOT + this.weigh(value[i]));
    const stride = length / SAMPLE;
    const sampled = this.#sum(SAMPLE, (i) => {
      const index = Math.floor(i * stride);
      // A hole may stand for thousands; a sparse array keeps no slots for them.
      return Object.hasOwn(value, index) ? SLOT + this.weigh(value[index]) : 0;
    });
    return sampled * stride;
  }

  #properties(value: object): number {
    const keys = Object.keys(value);
    const record = value as Record<string, unknown>;
    const stride = Math.max(1, keys.length / SAMPLE);
    const count = Math.min(keys.length, SAMPLE);
    // Large objects are dictionaries, which store the keys; the names of small ones are shared by all of their shape.
    const perKey = keys.length > SAMPLE ? 3 * SLOT + STRING : SLOT;
    return stride * this.#sum(count, (i) => perKey + this.weigh(record[keys[Math.floor(i * stride)]!]));
  }

  #entries(value: Map<unknown, unknown> | Set<unknown>): number {
    let seen = 0;
    let total = 0;
    for (const [key, part] of value.entries()) {
      total += HASH_ENTRY + this.weigh(key) + (key === part ? 0 : this.weigh(part));
      if (++seen === SAMPLE) break;
    }
    return seen === 0 ? 0 : (total / seen) * value.size;
  }

  #sum(count: number, part: (index: number) => number): number {
    let total = 0;
    for (let i = 0; i < count; i++) total += part(i);
    return total;
  }
}

function bigintBytes(value: bigint): number {
  return BigInt.asIntN(64, value) === value ? SLOT : value.toString(32).length;
}
