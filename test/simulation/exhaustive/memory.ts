// What a process has in memory, as a digest: all that can be reached from its cache, except for what decides nothing.
//
// The sources are compiled with their private fields as properties for this. The variables of functions cannot be seen.

/** Objects that decide nothing, by their class: what was counted and measured. */
const UNDECISIVE = new Set([
  "Telemetry",
  "Instruments",
  "Recorder",
  "OperationRecord",
  "History",
  "Histogram",
]);

/** Likewise their fields. */
const UNDECISIVE_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  // Numbers that connections have over all worlds. There is one connection per process, which lasts.
  Connection: new Set(["id", "Connection$writer", "Connection$reader"]),
  HeldStamp: new Set(["epoch"]),
  Object: new Set(["epoch"]),
  // Calls that have ended wait here until their deadline would have passed; when a timer is due is compared elsewhere.
  Guard: new Set(["deadlines"]),
  // The one key is not evicted, and expires after the exploration.
  Table: new Set(["Table$eviction", "Table$sampling", "Table$schedule"]),
};

const NONE: ReadonlySet<string> = new Set();

/** Of this size are buffers for what passes through, and tables for more keys than one. */
const LARGE_BYTES = 4_096;

/** Objects are hashed one after another, each with what it has, and with the numbers of those that it refers to. */
export function digestOf(root: object): string {
  const hash = new Hash();
  const numbers = new Map<object, number>([[root, 0]]);
  const add = (value: unknown): void => {
    if (typeof value !== "object" || value === null) {
      hash.add(value);
      return;
    }
    let number = numbers.get(value);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(value, number);
    }
    hash.mix(OBJECT);
    hash.mix(number);
  };
  // Those that are found meanwhile are visited too.
  for (const found of numbers.keys()) {
    if (ArrayBuffer.isView(found)) {
      if (found.byteLength < LARGE_BYTES) hash.addBytes(found);
      continue;
    }
    const { number, isUndecisive, isPlain, undecisive } = kindOf(found);
    hash.mix(number);
    if (isUndecisive) continue;
    if (Array.isArray(found)) {
      hash.mix(found.length);
      for (const value of found) add(value);
      continue;
    }
    // An entry of a map is found as a list.
    if (found instanceof Map || found instanceof Set) for (const entry of found) add(entry);
    const fields = found as Readonly<Record<string, unknown>>;
    for (const field in fields) {
      if (undecisive.has(field) || !Object.hasOwn(fields, field)) continue;
      if (isPlain) hash.add(field);
      add(fields[field]);
    }
  }
  return hash.digest;
}

interface Kind {
  readonly number: number;
  readonly isUndecisive: boolean;
  /** Whether objects of this kind may have any fields. Those of a class have the same ones in the same order. */
  readonly isPlain: boolean;
  readonly undecisive: ReadonlySet<string>;
}

/** By the class. */
const kinds = new Map<unknown, Kind>();

function kindOf(found: object): Kind {
  const known = kinds.get(found.constructor);
  if (known !== undefined) return known;
  const name = found.constructor?.name ?? "";
  const undecisive = UNDECISIVE_FIELDS[name] ?? NONE;
  const isPlain = found.constructor === undefined || found.constructor === Object;
  const kind: Kind = { number: kinds.size, isUndecisive: UNDECISIVE.has(name), isPlain, undecisive };
  kinds.set(found.constructor, kind);
  return kind;
}

/** What a word means that comes after it; numbers that are no 32-bit integers take two. */
const [INTEGER, FLOAT, FUNCTION, OBJECT, OTHER] = [1, 2, 3, 4, 5];

/** Strings and other values that were met, each with its number. */
const values = new Map<unknown, number>();

const float = new Float64Array(1);
const words = new Int32Array(float.buffer);

/** Two independent hashes of 32 bits over the same words. */
class Hash {
  #one = 1;
  #other = 2;

  get digest(): string {
    return `${this.#one >>> 0}.${this.#other >>> 0}`;
  }

  mix(word: number): void {
    const one = Math.imul(this.#one ^ word, 0x9e37_79b1);
    const other = Math.imul((this.#other + word) | 0, 0x85eb_ca77);
    this.#one = one ^ (one >>> 15);
    this.#other = other ^ (other >>> 13);
  }

  /** Anything but an object. */
  add(value: unknown): void {
    if (typeof value === "number") this.#addNumber(value);
    else if (typeof value === "function") this.#addNumbered(FUNCTION, value.name);
    else this.#addNumbered(OTHER, value);
  }

  addBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): void {
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    this.mix(byteLength);
    for (let at = 0; at < byteLength; at++) this.mix(bytes[at] as number);
  }

  #addNumber(value: number): void {
    if (Object.is(value | 0, value)) {
      this.mix(INTEGER);
      this.mix(value);
      return;
    }
    float[0] = value;
    this.mix(FLOAT);
    this.mix(words[0] as number);
    this.mix(words[1] as number);
  }

  #addNumbered(kind: number, value: unknown): void {
    let number = values.get(value);
    if (number === undefined) {
      number = values.size;
      values.set(value, number);
    }
    this.mix(kind);
    this.mix(number);
  }
}
