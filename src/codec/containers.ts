// Plain objects and arrays with holes, built without touching a prototype and without allocating or visiting holes.

/** Beyond this gap V8 stores elements in a dictionary instead of allocating the space between. */
const DENSE_GAP = 1024;

export function isHole(array: readonly unknown[], index: number): boolean {
  return !Object.hasOwn(array, index);
}

/** In ascending order. Takes time for the elements that exist, not for the length. */
export function presentIndexes(array: readonly unknown[]): number[] {
  const indexes: number[] = [];
  for (const key of Object.keys(array)) {
    const index = Number(key) >>> 0;
    if (index < array.length && String(index) === key) indexes.push(index);
  }
  return indexes.sort((a, b) => a - b);
}

/** An array of `length` holes; a large one takes no memory. */
export function holes(length: number): unknown[] {
  const array: unknown[] = [];
  if (length > DENSE_GAP) {
    array[length - 1] = undefined;
    array.length = length - 1;
  }
  array.length = length;
  return array;
}

const EMPTY = {};

/** Whether Object.prototype has enumerable properties, which for-in would visit. */
export function isPrototypePolluted(): boolean {
  for (const _ in EMPTY) return true;
  return false;
}

/** Like `target[key] = value`, but `__proto__` becomes an own property. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}
