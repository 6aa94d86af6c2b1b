// Arbitrary values of every kind the codec stores.
import fc from "fast-check";

/** Any sequence of UTF-16 units: lone surrogates, control characters, everything. */
const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "grapheme-ascii" }),
  fc.string({ unit: "grapheme" }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom("\ud800", "a\udc00b", "\u0000", "é".repeat(70), "x".repeat(300), "\ud83d\ude00".repeat(40)),
);

const anyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.integer({ min: -300, max: 300 }),
  fc.constantFrom(
    -0,
    0,
    Number.NaN,
    Infinity,
    -Infinity,
    0.5,
    2 ** 31,
    2 ** 32,
    -(2 ** 31),
    -(2 ** 31) - 1,
    2 ** 53,
  ),
);

const anyBytes = fc.uint8Array({ maxLength: 48 });

const withLength = (multiple: number) => (bytes: Uint8Array) =>
  Uint8Array.from(bytes.subarray(0, bytes.length - (bytes.length % multiple))).buffer;

const anyBinary: fc.Arbitrary<unknown> = fc.oneof(
  anyBytes.map((bytes) => Buffer.from(bytes)),
  anyBytes.map((bytes) => Uint8Array.from(bytes)),
  anyBytes.map((bytes) => Uint8Array.from(bytes).buffer),
  anyBytes.map((bytes) => new DataView(Uint8Array.from(bytes).buffer)),
  anyBytes.map((bytes) => new Int8Array(withLength(1)(bytes))),
  anyBytes.map((bytes) => new Uint8ClampedArray(withLength(1)(bytes))),
  anyBytes.map((bytes) => new Int16Array(withLength(2)(bytes))),
  anyBytes.map((bytes) => new Uint16Array(withLength(2)(bytes))),
  anyBytes.map((bytes) => new Int32Array(withLength(4)(bytes))),
  anyBytes.map((bytes) => new Uint32Array(withLength(4)(bytes))),
  anyBytes.map((bytes) => new Float32Array(withLength(4)(bytes))),
  anyBytes.map((bytes) => new Float64Array(withLength(8)(bytes))),
  anyBytes.map((bytes) => new BigInt64Array(withLength(8)(bytes))),
  anyBytes.map((bytes) => new BigUint64Array(withLength(8)(bytes))),
);

const anyBigint = fc.oneof(
  fc.bigInt(),
  fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }),
  fc.constantFrom(
    0n,
    -1n,
    2n ** 63n - 1n,
    2n ** 63n,
    -(2n ** 63n),
    -(2n ** 63n) - 1n,
    2n ** 64n - 1n,
    2n ** 64n,
    3n ** 900n,
  ),
);

const anyRegExp = fc
  .constantFrom(/a/, /[/\]]+/gi, /\u{1f600}/u, /(?<year>\d{4})/dy, /(?:)/, /é\n/ms)
  .map(({ source, flags }) => new RegExp(source, flags));

const anyLeaf: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, undefined, true, false),
  anyNumber,
  anyText,
  anyBigint,
  fc.date({ noInvalidDate: false }),
  anyRegExp,
  anyBinary,
  fc.oneof(anyNumber, anyText, fc.boolean(), fc.bigInt()).map((primitive) => Object(primitive) as object),
);

const anyKey = fc.oneof(
  fc.constantFrom("id", "name", "__proto__", "constructor", "toString", "length", "0", "10", "-1", ""),
  anyText,
);

export function objectOf(entries: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  }
  return object;
}

function sparseOf(length: number, entries: readonly (readonly [number, unknown])[]): unknown[] {
  const array: unknown[] = [];
  array.length = length;
  for (const [index, value] of entries) if (index < length) array[index] = value;
  return array;
}

const STANDARD_ERRORS = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];

function errorOf(type: ErrorConstructor | string, message: string, cause: readonly unknown[]): Error {
  const Type = typeof type === "string" ? Error : type;
  const error = cause.length === 0 ? new Type(message) : new Type(message, { cause: cause[0] });
  if (typeof type === "string") Object.defineProperty(error, "name", { value: type });
  return error;
}

const { value } = fc.letrec<{ value: unknown; inner: unknown }>((tie) => ({
  value: fc.oneof({ depthSize: "small", withCrossShrink: true }, anyLeaf, tie("inner")),
  inner: fc.oneof(
    fc.array(tie("value"), { maxLength: 20 }),
    fc.array(fc.tuple(anyKey, tie("value")), { maxLength: 20 }).map(objectOf),
    fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 8 }).map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 8 }).map((items) => new Set(items)),
    fc
      .tuple(
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), tie("value")), { maxLength: 6 }),
      )
      .map(([length, entries]) => sparseOf(length, entries)),
    fc
      .tuple(
        fc.constantFrom("NotFound", ...(STANDARD_ERRORS as ErrorConstructor[])),
        anyText,
        fc.array(tie("value"), { maxLength: 1 }),
      )
      .map(([type, message, cause]) => errorOf(type, message, cause)),
  ),
}));

/** Values that the codec restores unchanged. */
export const anyValue: fc.Arbitrary<unknown> = value.filter((candidate) => candidate !== undefined);

const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, false),
    anyNumber.filter((number) => Number.isFinite(number) && !Object.is(number, -0)),
    anyText,
    fc.array(tie("json"), { maxLength: 20 }),
    fc.array(fc.tuple(anyKey, tie("json")), { maxLength: 20 }).map(objectOf),
  ),
}));

/** Values that JSON represents exactly. */
export const anyJson: fc.Arbitrary<unknown> = json;
