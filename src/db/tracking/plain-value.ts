// Whether a value comes back from a cache as it went in: no instance of a class but those that every codec knows.

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
