// How much a value is when every reference to a shared object is followed, known from about one visit of each object: a
// few dozen objects that refer to each other twice can stand for billions of parts.
import { errorFactsOf } from "./error-object.ts";
import { kindOf } from "./kind.ts";
import { isHole, presentIndexes } from "./sparse-array.ts";

export interface Amount {
  readonly objects: number;
  /** Those of strings and binary data, and one for every other part. */
  readonly bytes: number;
}

/** Stands for an object that is being looked into: whatever leads back to it closes a circle. */
const UNDER_WAY: Amount = { objects: 0, bytes: 0 };
/** An object without others in it that is smaller is counted anew each time: that is cheaper than to remember it. */
const REMEMBERED_BYTES = 256;

export type Unfolding = "within" | "beyond" | "circular";

/** Whether it is more than `most` in one respect. What cannot be read, or lies deeper than `maxDepth`, counts for nothing. */
export function unfold(value: unknown, most: Amount, maxDepth: number): Unfolding {
  const sum = new Sum(most, maxDepth);
  sum.add(value, 0);
  return sum.outcome;
}

class Sum {
  outcome: Unfolding = "within";
  readonly #most: Amount;
  readonly #maxDepth: number;
  readonly #known = new Map<object, Amount>();
  readonly #above: object[] = [];
  #objects = 0;
  #bytes = 0;

  constructor(most: Amount, maxDepth: number) {
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
    // Those without an object in them are not entered.
    if (objects === 1 && depth > 0) this.#known.set(this.#above[depth - 1]!, UNDER_WAY);
    let amount = this.#known.get(value);
    if (amount === UNDER_WAY) {
      this.outcome = "circular";
      return;
    }
    amount ??= this.#amountOf(value, depth);
    this.#objects = objects + amount.objects;
    this.#bytes = bytes + amount.bytes;
    // Every sum on the way is part of the whole.
    if (this.#objects > this.#most.objects || this.#bytes > this.#most.bytes) this.outcome = "beyond";
  }

  #amountOf(value: object, depth: number): Amount {
    this.#above[depth] = value;
    this.#objects = 1;
    this.#bytes = 1;
    try {
      this.#parts(value, depth + 1);
    } catch {
      // The walk that asks comes to it as well.
    }
    const amount = { objects: this.#objects, bytes: this.#bytes };
    if (amount.objects > 1 || amount.bytes >= REMEMBERED_BYTES) this.#known.set(value, amount);
    return amount;
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
