// Copies of values for the in-process tiers, whole or their beginning: all that a store in memory needs of the codec.
import type { Beginning, Copier } from "../core/codec.ts";
import { copyChecked, copyTrusted } from "./copy.ts";
import type { CodecLimits } from "./options.ts";
import { refusalOf } from "./refusal.ts";
import { sizeOf } from "./retained-size.ts";

export function createCopier(limits: CodecLimits): Copier {
  return {
    copyBeginning: valueBeginning,
    copy<T>(value: T): T {
      try {
        return copyChecked(value, limits) as T;
      } catch (thrown) {
        throw refusalOf(value, limits, thrown);
      }
    },
    copyTrusted: <T>(value: T): T => copyTrusted(value) as T,
    sizeOf,
  };
}

/** Deeper parts are left out. */
const DEEPEST = 32;

/** `most`: characters, bytes and members of the copy, all of them together. */
function valueBeginning(value: unknown, most: number): Beginning {
  const copying = new BoundedCopy(most);
  const copy = copying.of(value, 0);
  const members = membersOf(value);
  return { value: copy, isWhole: copying.isWhole, ...(members !== undefined && { members }) };
}

function membersOf(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return value.length;
  if (value instanceof Map || value instanceof Set) return value.size;
  if (ArrayBuffer.isView(value)) return undefined;
  return isPlain(value) ? Object.keys(value).length : undefined;
}

const isPlain = (value: object): boolean => Object.prototype.toString.call(value) === "[object Object]";

class BoundedCopy {
  #left: number;
  isWhole = true;

  constructor(most: number) {
    // The value itself is one part.
    this.#left = most + 1;
  }

  of(value: unknown, depth: number): unknown {
    this.#left--;
    if (typeof value === "string") return value.slice(0, this.#taken(value.length));
    if (typeof value !== "object" || value === null) return value;
    if (depth > DEEPEST) {
      this.isWhole = false;
      return undefined;
    }
    if (Array.isArray(value)) return this.#first(value, depth);
    if (value instanceof Set) return new Set(this.#first(value, depth));
    if (value instanceof Map) return new Map(this.#first(value, depth) as [unknown, unknown][]);
    if (value instanceof ArrayBuffer) return value.slice(0, this.#taken(value.byteLength));
    if (ArrayBuffer.isView(value)) return this.#view(value);
    if (!isPlain(value)) return copyTrusted(value);
    return Object.fromEntries(this.#first(Object.entries(value), depth) as [string, unknown][]);
  }

  #first(items: Iterable<unknown>, depth: number): unknown[] {
    const copied: unknown[] = [];
    for (const item of items) {
      if (this.#left <= 0) {
        this.isWhole = false;
        break;
      }
      copied.push(this.of(item, depth + 1));
    }
    return copied;
  }

  #view(view: ArrayBufferView): unknown {
    const { BYTES_PER_ELEMENT: width = 1 } = view as { BYTES_PER_ELEMENT?: number };
    const bytes = Math.floor(this.#taken(view.byteLength) / width) * width;
    if (bytes === view.byteLength) return copyTrusted(view);
    const Constructor = view.constructor as new (
      buffer: ArrayBufferLike,
      at: number,
      length: number,
    ) => object;
    // Of a view of a part, only that part is copied.
    return copyTrusted(new Constructor(view.buffer, view.byteOffset, bytes / width));
  }

  #taken(length: number): number {
    const taken = Math.max(0, Math.min(length, this.#left));
    if (taken < length) this.isWhole = false;
    this.#left -= taken;
    return taken;
  }
}
