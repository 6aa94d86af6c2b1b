// The size of a value with every reference to a shared object followed, from about one visit per object: a few dozen objects
// that refer to each other twice can expand to billions of parts.

import { isHole, presentIndexes } from "./containers.ts";
import { errorFactsOf } from "./error-object.ts";
import { kindOf } from "./kind.ts";

export interface Size {
  readonly objects: number;
  /** The bytes of strings and binary data, plus one for every other part. */
  readonly bytes: number;
}

/** Marks an object that is being visited: a reference back to it is a cycle. */
const IN_PROGRESS: Size = { objects: 0, bytes: 0 };
/** A smaller object without nested objects is counted again each time, which is cheaper than remembering it. */
const REMEMBERED_BYTES = 256;

export type Unfolding = "within" | "beyond" | "cyclic";

/** Compares it with `most`. Parts that cannot be read or lie deeper than `maxDepth` are not counted. */
export function unfold(value: unknown, most: Size, maxDepth: number): Unfolding {
  const sum = new Sum(most, maxDepth);
  sum.add(value, 0);
  return sum.outcome;
}

class Sum {
  outcome: Unfolding = "within";
  readonly #most: Size;
  readonly #maxDepth: number;
  readonly #known = new Map<object, Size>();
  readonly #ancestors: object[] = [];
  #objects = 0;
  #bytes = 0;

  constructor(most: Size, maxDepth: number) {
    this.#most = most;
    this.#maxDepth = maxDepth;
  }

  add(value: unknown, depth: number): void {
    if (typeof value === "string") this.#bytes += value.length;
    else if (typeof value !== "object" || value === null) this.#bytes++;
    else if (this.outcome === "within" && depth < this.#maxDepth) this.#object(value, depth);
  }

  #object(value: object, depth: number): void {
    const objects = this.#objects;
    const bytes = this.#bytes;
    // Only now is the parent known to contain an object; parents that do not are never recorded.
    if (objects === 1 && depth > 0) this.#known.set(this.#ancestors[depth - 1]!, IN_PROGRESS);
    let size = this.#known.get(value);
    if (size === IN_PROGRESS) {
      this.outcome = "cyclic";
      return;
    }
    size ??= this.#sizeOf(value, depth);
    this.#objects = objects + size.objects;
    this.#bytes = bytes + size.bytes;
    // Every partial sum is a lower bound of the whole.
    if (this.#objects > this.#most.objects || this.#bytes > this.#most.bytes) this.outcome = "beyond";
  }

  #sizeOf(value: object, depth: number): Size {
    this.#ancestors[depth] = value;
    this.#objects = 1;
    this.#bytes = 1;
    try {
      this.#parts(value, depth + 1);
    } catch {
      // The calling walk will meet the same error.
    }
    const size = { objects: this.#objects, bytes: this.#bytes };
    if (size.objects > 1 || size.bytes >= REMEMBERED_BYTES) this.#known.set(value, size);
    return size;
  }

  #parts(value: object, depth: number): void {
    switch (kindOf(value)) {
      case "plain":
      case "object":
        for (const key of Object.keys(value)) {
          this.#bytes += key.length;
          this.add((value as Record<string, unknown>)[key], depth);
        }
        break;
      case "array":
        this.#array(value as unknown[], depth);
        break;
      case "map":
        Map.prototype.forEach.call(value, (part, key) => {
          this.add(key, depth);
          this.add(part, depth);
        });
        break;
      case "set":
        Set.prototype.forEach.call(value, (part) => this.add(part, depth));
        break;
      case "error":
        this.#error(value as Error, depth);
        break;
      case "buffer":
      case "view":
        this.#bytes += (value as ArrayBuffer | ArrayBufferView).byteLength;
        break;
      default:
    }
  }

  #array(value: readonly unknown[], depth: number): void {
    for (let i = 0; i < value.length; i++) {
      const part = value[i];
      if (part === undefined && isHole(value, i)) {
        for (const index of presentIndexes(value)) if (index >= i) this.add(value[index], depth);
        return;
      }
      this.add(part, depth);
    }
  }

  #error(value: Error, depth: number): void {
    const { name, message, stack, cause } = errorFactsOf(value);
    for (const part of [name, message, stack, cause]) this.add(part, depth);
  }
}
