// Strict equality: distinguishes -0 from 0, a hole from undefined, a missing property from an undefined one, a Buffer
// from a Uint8Array, and one order of keys from another.
import { types } from "node:util";

/** Where and how the two differ; undefined when they do not. */
export function difference(actual: unknown, expected: unknown, path = "$"): string | undefined {
  if (typeof actual !== "object" || actual === null || typeof expected !== "object" || expected === null) {
    return Object.is(actual, expected) ? undefined : `${path}: ${String(actual)} is not ${String(expected)}`;
  }
  if (actual === expected) return `${path}: the very same object`;
  if (Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) {
    return `${path}: ${typeName(actual)} is not ${typeName(expected)}`;
  }
  if (Array.isArray(actual) !== Array.isArray(expected)) return `${path}: only one is an array`;
  return insideDifference(actual, expected, path) ?? ownDifference(actual, expected, path);
}

function typeName(value: object): string {
  return Object.getPrototypeOf(value)?.constructor?.name ?? "null prototype";
}

function insideDifference(actual: object, expected: object, path: string): string | undefined {
  if (types.isDate(actual) && types.isDate(expected)) {
    return difference(actual.getTime(), expected.getTime(), `${path}.getTime()`);
  }
  if (types.isRegExp(actual) && types.isRegExp(expected)) {
    return (
      difference(String(actual), String(expected), `${path}.source`) ??
      difference(actual.lastIndex, 0, `${path}.lastIndex`)
    );
  }
  if (types.isMap(actual) && types.isMap(expected)) {
    return difference([...actual].flat(1), [...expected].flat(1), `${path}.entries()`);
  }
  if (types.isSet(actual) && types.isSet(expected))
    return difference([...actual], [...expected], `${path}.values()`);
  if (types.isBoxedPrimitive(actual))
    return difference(actual.valueOf(), expected.valueOf(), `${path}.valueOf()`);
  if (types.isAnyArrayBuffer(actual) && types.isAnyArrayBuffer(expected)) {
    return byteDifference(new Uint8Array(actual), new Uint8Array(expected), path);
  }
  if (ArrayBuffer.isView(actual) && ArrayBuffer.isView(expected)) {
    return byteDifference(viewBytes(actual), viewBytes(expected), path);
  }
  if (types.isNativeError(actual) && types.isNativeError(expected))
    return errorDifference(actual, expected, path);
  return undefined;
}

function errorDifference(actual: Error, expected: Error, path: string): string | undefined {
  for (const key of ["name", "message", "stack", "cause"] as const) {
    if (key !== "name" && key !== "stack" && Object.hasOwn(actual, key) !== Object.hasOwn(expected, key)) {
      return `${path}.${key}: own in only one`;
    }
    const found = difference(actual[key], expected[key], `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function viewBytes(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

function byteDifference(actual: Uint8Array, expected: Uint8Array, path: string): string | undefined {
  if (actual.length > 0 && actual.buffer === expected.buffer && actual.byteOffset === expected.byteOffset) {
    return `${path}: shared memory`;
  }
  return Buffer.compare(actual, expected) === 0 ? undefined : `${path}: other bytes`;
}

function ownDifference(actual: object, expected: object, path: string): string | undefined {
  if (ArrayBuffer.isView(actual) || types.isStringObject(actual)) return undefined;
  const keys = Object.keys(expected);
  if (Object.keys(actual).join("\0") !== keys.join("\0")) {
    return `${path}: keys ${Object.keys(actual)} are not ${keys}`;
  }
  if (Array.isArray(actual) && actual.length !== (expected as unknown[]).length) return `${path}.length`;
  for (const key of keys) {
    const found = difference(own(actual, key), own(expected, key), `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function own(value: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}
