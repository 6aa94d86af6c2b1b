// Copies of arguments, taken when a call begins: what is done with them later must be what their key was made of; and data that survives any copy.

/** Deeper parts are used as they are: nobody builds arguments like that, and a cycle must end. */
const MOST_DEPTH = 32;

/** Plain data is copied; class instances and functions are the same objects. */
export function snapshot<T>(value: T, depth = 0): T {
  if (typeof value !== "object" || value === null || depth > MOST_DEPTH) return value;
  return (copyOf(value, depth + 1) ?? value) as T;
}

function copyOf(value: object, depth: number): unknown {
  if (Array.isArray(value))
    return Object.getPrototypeOf(value) === Array.prototype
      ? value.map((each) => snapshot(each, depth))
      : undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  switch (prototype) {
    case Object.prototype:
    case null:
      return copyOfPlain(value, prototype, depth);
    case Date.prototype:
      return new Date((value as Date).getTime());
    case Map.prototype:
      return new Map(
        [...(value as Map<unknown, unknown>)].map(([key, each]) => [
          snapshot(key, depth),
          snapshot(each, depth),
        ]),
      );
    case Set.prototype:
      return new Set([...(value as Set<unknown>)].map((each) => snapshot(each, depth)));
    case Buffer.prototype:
      return Buffer.from(value as Buffer);
    case Uint8Array.prototype:
      return Uint8Array.from(value as Uint8Array);
    default:
      return undefined;
  }
}

/** An object with getters may compute something else each time: it stays as it is. */
function copyOfPlain(value: object, prototype: object | null, depth: number): object | undefined {
  const copy = Object.create(prototype) as Record<PropertyKey, unknown>;
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (property === undefined || !("value" in property) || key === "__proto__") return undefined;
    if (property.enumerable) copy[key] = snapshot(property.value, depth);
  }
  return copy;
}

/** Whether a value comes back from a cache unchanged: it has no class instances but those that every codec knows. */
export function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null)
    return typeof value !== "function" && typeof value !== "symbol";
  if (Array.isArray(value)) return value.every(isPlain);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Date.prototype || prototype === Buffer.prototype || prototype === Uint8Array.prototype) {
    return true;
  }
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlain);
}
