// Values that callers share because nobody can change them.

/** What callers get of a value that this process holds: a copy of their own, the object itself, or one frozen copy. */
export type Handing = "copy" | "shared" | "frozen";

/** The outermost objects of what `frozen` has made; something frozen by others may have parts that are not. */
const made = new WeakSet<object>();

/** Freezes plain objects and arrays with all they hold. Anything else in them can change though frozen: then nothing is done. */
export function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || made.has(value) || !isPlain(value)) return value;
  freezeParts(value);
  made.add(value);
  return value;
}

/** Whether `frozen` has made it, or it cannot be changed anyway. Functions and symbols are no values: a copy refuses them. */
export const isMadeFrozen = (value: unknown): boolean =>
  typeof value === "object" && value !== null
    ? made.has(value)
    : typeof value !== "function" && typeof value !== "symbol";

function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return false;
  return Object.values(value).every(isPlain);
}

function freezeParts(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freezeParts(part);
}
