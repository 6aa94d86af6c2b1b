// Copies of arguments, taken when a call begins: what is done with them later must be what their key was made of; and data that survives any copy.

/** Deeper parts are used as they are: nobody builds arguments like that. */
const MOST_DEPTH = 32;
/** The deepest nesting a codec allows. */
const MOST_LEVELS = 1_000;

/** The copies so far by their originals: a part that occurs again, perhaps within itself, is copied once. */
type Copies = Map<object, unknown>;

/** Plain data is copied; class instances, functions and objects that a copy would lack a part of are the same objects. */
export function snapshot<T>(value: T): T {
  return typeof value === "object" && value !== null ? (partOf(value, 0, new Map()) as T) : value;
}

function partOf(value: unknown, depth: number, copies: Copies): unknown {
  if (typeof value !== "object" || value === null || depth > MOST_DEPTH) return value;
  return copies.get(value) ?? copyOf(value, depth + 1, copies) ?? value;
}

function copyOf(value: object, depth: number, copies: Copies): unknown {
  if (Array.isArray(value)) return copyOfArray(value, depth, copies);
  const prototype: unknown = Object.getPrototypeOf(value);
  switch (prototype) {
    case Object.prototype:
    case null:
      return copyOfPlain(value, prototype, depth, copies);
    case Date.prototype:
      return noted(value, new Date((value as Date).getTime()), copies);
    case Map.prototype: {
      const copy = noted(value, new Map<unknown, unknown>(), copies);
      for (const [key, each] of value as Map<unknown, unknown>)
        copy.set(partOf(key, depth, copies), partOf(each, depth, copies));
      return copy;
    }
    case Set.prototype: {
      const copy = noted(value, new Set<unknown>(), copies);
      for (const each of value as Set<unknown>) copy.add(partOf(each, depth, copies));
      return copy;
    }
    case Buffer.prototype:
      return noted(value, Buffer.from(value as Buffer), copies);
    case Uint8Array.prototype:
      return noted(value, Uint8Array.from(value as Uint8Array), copies);
    default:
      return undefined;
  }
}

/** An object literal, or one without a prototype. */
export function isLiteral(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Before its parts are copied, since one of them may be the value itself. */
function noted<T>(value: object, copy: T, copies: Copies): T {
  copies.set(value, copy);
  return copy;
}

/** The strings of a tagged template have `raw`, and the match of a regular expression `groups`. */
function copyOfArray(value: readonly unknown[], depth: number, copies: Copies): unknown[] | undefined {
  const hasMore = Object.getPrototypeOf(value) !== Array.prototype || "raw" in value || "groups" in value;
  if (hasMore) return undefined;
  const copy = noted(value, value.slice(), copies);
  for (const [at, each] of copy.entries()) {
    if (typeof each === "object" && each !== null) copy[at] = partOf(each, depth, copies);
  }
  return copy;
}

/** An object with getters may compute something else each time, and hidden properties are there for a reason: it stays as it is. */
function copyOfPlain(
  value: object,
  prototype: object | null,
  depth: number,
  copies: Copies,
): object | undefined {
  const keys = Reflect.ownKeys(value);
  for (const key of keys) if (!isData(key, Object.getOwnPropertyDescriptor(value, key))) return undefined;
  const original = value as Record<PropertyKey, unknown>;
  const copy = noted(value, Object.create(prototype) as Record<PropertyKey, unknown>, copies);
  for (const key of keys) copy[key] = partOf(original[key], depth, copies);
  return copy;
}

const isData = (key: PropertyKey, property: PropertyDescriptor | undefined): boolean =>
  property?.enumerable === true && "value" in property && key !== "__proto__";

/**
 * Whether a value comes back from a cache unchanged: it has no class instances but those that every codec knows, and does not
 * contain itself.
 */
export function isPlain(value: unknown): boolean {
  return isPlainPart(value, 0, new Map());
}

/** `checked`: what is known of the objects so far. One whose parts are being checked is not plain, since it contains itself. */
function isPlainPart(value: unknown, level: number, checked: Map<object, boolean>): boolean {
  if (typeof value !== "object" || value === null)
    return typeof value !== "function" && typeof value !== "symbol";
  const known = checked.get(value);
  if (known !== undefined) return known;
  checked.set(value, false);
  const parts = plainPartsOf(value);
  const result =
    parts !== undefined &&
    level < MOST_LEVELS &&
    parts.every((part) => isPlainPart(part, level + 1, checked));
  checked.set(value, result);
  return result;
}

/** Undefined: an instance of a class that not every codec knows. */
function plainPartsOf(value: object): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Date.prototype || prototype === Buffer.prototype || prototype === Uint8Array.prototype) {
    return [];
  }
  return prototype === Object.prototype || prototype === null ? Object.values(value) : undefined;
}
