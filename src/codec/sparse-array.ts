// Arrays with holes, without ever allocating or visiting what is not there.

/** Beyond this gap V8 keeps elements in a dictionary instead of allocating the space between. */
const DENSE_GAP = 1024;

export function isHole(array: readonly unknown[], index: number): boolean {
  return !Object.hasOwn(array, index);
}

/** In rising order; costs what is present, not the length. */
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
