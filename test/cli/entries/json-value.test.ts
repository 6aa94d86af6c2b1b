// Values as JSON and back.
import fc from "fast-check";
import { expect, test } from "vitest";
import { fromJson, toJson } from "../../../src/cli/entries/json-value.ts";
import { codePoint } from "../../support/code-point.ts";

const there = (value: unknown): unknown => JSON.parse(JSON.stringify(toJson(value)));

test("every value survives the round trip", () => {
  const leaf = fc.oneof(
    fc.string({ unit: codePoint }),
    fc.double(),
    fc.bigInt(),
    fc.boolean(),
    fc.constantFrom(null, undefined),
    fc.date(),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.float64Array(),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: "small" }, leaf, tie("list"), tie("object"), tie("map"), tie("set")),
    list: fc.array(tie("value")),
    object: fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom("$type", "value", "__proto__")),
      tie("value"),
      {
        noNullPrototype: true,
      },
    ),
    map: fc.array(fc.tuple(leaf, tie("value"))).map((pairs) => new Map(pairs)),
    set: fc.array(leaf).map((items) => new Set(items)),
  }));
  fc.assert(
    fc.property(value, (each) => {
      expect(fromJson(there(each))).toStrictEqual(each);
    }),
  );
});

test("values that JSON can express are written as plain JSON", () => {
  const plain = { a: [1, "x", null, true, { b: -1.5 }] };
  expect(toJson(plain)).toEqual(plain);
});

test("an object with a $type of its own is not mistaken for an encoded value", () => {
  expect(there({ $type: "date", value: "x" })).toEqual({
    $type: "object",
    value: { $type: "date", value: "x" },
  });
});

test("an unknown type is refused, including names of Object.prototype properties", () => {
  for (const type of ["constructor", "toString", "__proto__", "nothing"]) {
    expect(() => fromJson(JSON.parse(`{"$type":"${type}"}`))).toThrow("unknown $type");
  }
});
