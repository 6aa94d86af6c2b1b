import { Blob } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import { CodecError } from "../../src/core/errors.ts";
import { anyValue } from "./arbitrary.ts";

const codec = createCodec();
const jsonCodec = createCodec({ serialization: "json" });

function refusal(act: () => unknown): CodecError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError);
    return error as CodecError;
  }
  throw new Error("nothing was thrown");
}

/** The message of each entry point; they must agree to the letter. */
function refusalOf(value: unknown): CodecError {
  const error = refusal(() => codec.encode(value));
  for (const act of [() => codec.copy(value), () => jsonCodec.encode(value)]) {
    const other = refusal(act);
    expect([other.code, other.path, other.message]).toEqual([error.code, error.path, error.message]);
  }
  return error;
}

const someFunction = (): void => {};

test("undefined is rejected at the top, with advice", () => {
  const error = refusalOf(undefined);
  expect(error.code).toBe("VALUE_UNSUPPORTED");
  expect(error.path).toBe("$");
  expect(error.hint).toContain("null");
});

test("a function is rejected under the path of the property that holds it", () => {
  const error = refusalOf({ items: [1, 2, 3, { run: someFunction }] });
  expect(error.code).toBe("VALUE_UNSUPPORTED");
  expect(error.path).toBe("$.items[3].run");
  expect(error.message).toBe("Cannot store a function at $.items[3].run.");
});

// biome-ignore lint/suspicious/noSparseArray: the hole is the point
const sparse = [, someFunction];
const objectKey = { k: 1 };

test.each<[path: string, value: unknown]>([
  ["$", someFunction],
  ["$", Symbol("s")],
  ["$[0]", [Symbol.iterator]],
  ["$[1]", sparse],
  ['$["odd key"]', { "odd key": someFunction }],
  ['$[""]', { "": someFunction }],
  ["$.__proto__", Object.defineProperty({}, "__proto__", { value: someFunction, enumerable: true })],
  ['$.map.get("k")', { map: new Map([["k", someFunction]]) }],
  ["$.map.get(7)", { map: new Map([[7, someFunction]]) }],
  ["$.map.get(7n)", { map: new Map([[7n, someFunction]]) }],
  ["$.map.get(null)", { map: new Map([[null, someFunction]]) }],
  [
    "$.map.values()[1]",
    {
      map: new Map<unknown, unknown>([
        ["a", 1],
        [objectKey, someFunction],
      ]),
    },
  ],
  [
    "$.map.keys()[1]",
    {
      map: new Map<unknown, unknown>([
        ["a", 1],
        [someFunction, 1],
      ]),
    },
  ],
  ["$.set.values()[2]", { set: new Set<unknown>([1, 2, someFunction]) }],
  ["$.cause.hook", new Error("x", { cause: { hook: someFunction } })],
  [`$.${"k".repeat(64)}…`, { ["k".repeat(100)]: someFunction }],
])("the path %s leads to the rejected part", (path, value) => {
  expect(refusalOf(value).path).toBe(path);
});

class Index extends Map<string, number> {
  override get [Symbol.toStringTag](): string {
    return "Index";
  }
}

test.each<[name: string, value: unknown]>([
  ["WeakMap", new WeakMap()],
  ["WeakSet", new WeakSet()],
  ["WeakRef", new WeakRef({})],
  ["Promise", Promise.resolve(1)],
  ["SharedArrayBuffer", new SharedArrayBuffer(8)],
  ["Symbol object", Object(Symbol("s"))],
  ["URL", new URL("http://example.test/")],
  ["URLSearchParams", new URLSearchParams("a=1")],
  ["AbortSignal", new AbortController().signal],
  ["Blob", new Blob(["x"])],
  ["Intl.NumberFormat", new Intl.NumberFormat("en")],
  ["generator", (function* () {})()],
  ["Map iterator", new Map().entries()],
  ["Proxy of a function", new Proxy(someFunction, {})],
  ["Proxy of a Map", new Proxy(new Map(), {})],
  ["Proxy of a Date", new Proxy(new Date(), {})],
  ["Proxy of a Map that calls itself otherwise", new Proxy(new Index(), {})],
])("a %s is rejected instead of losing its content", (_, value) => {
  const error = refusalOf({ part: value });
  expect(error.code).toBe("VALUE_UNSUPPORTED");
  expect(error.path).toBe("$.part");
});

test("a revoked Proxy and a detached buffer are rejected with the cause", () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const buffer = new ArrayBuffer(8);
  const view = new Uint8Array(buffer);
  structuredClone(buffer, { transfer: [buffer] });
  for (const value of [revoked.proxy, buffer, view]) {
    const error = refusalOf([value]);
    expect(error.path).toBe("$[0]");
    expect(error.cause).toBeInstanceOf(TypeError);
  }
});

test("what an accessor throws is the cause of a rejection that names the accessor", () => {
  const failure = new Error("no luck");
  const value = {
    fine: 1,
    deep: [
      {
        get broken(): never {
          throw failure;
        },
      },
    ],
  };
  const error = refusalOf(value);
  expect(error.path).toBe("$.deep[0].broken");
  expect(error.cause).toBe(failure);
  expect(error.message).toContain("no luck");
});

test("a value rejected at the end of the stack is an error, not the end of the process", () => {
  const attempt = (depth: number): unknown => {
    try {
      attempt(depth + 1);
      return undefined;
    } catch {
      try {
        return codec.encode({ "odd key": someFunction, url: new Map([["k", { deep: [someFunction] }]]) });
      } catch (error) {
        return error;
      }
    }
  };
  expect(attempt(0)).toBeUndefined();
});

test("an accessor that throws only once is still rejected", () => {
  let left = 1;
  const value = {
    get moody(): number {
      if (left-- > 0) throw new Error("first time");
      return 1;
    },
  };
  const error = refusal(() => codec.encode(value));
  expect(error.code).toBe("VALUE_UNSUPPORTED");
  expect((error.cause as Error).message).toBe("first time");
});

describe("cycles", () => {
  test("a cyclic object is rejected at the back reference, and the message names its target", () => {
    const value: Record<string, unknown> = { a: { b: [] } };
    ((value.a as { b: unknown[] }).b as unknown[]).push({ up: value.a });
    const error = refusalOf(value);
    expect(error.code).toBe("VALUE_UNSUPPORTED");
    expect(error.path).toBe("$.a.b[0].up");
    expect(error.message).toContain("leads back to $.a.");
  });

  test.each<[kind: string, make: () => unknown]>([
    [
      "array",
      () => {
        const a: unknown[] = [];
        a.push(a);
        return a;
      },
    ],
    [
      "Map value",
      () => {
        const m = new Map<string, unknown>();
        m.set("m", m);
        return m;
      },
    ],
    [
      "Map key",
      () => {
        const m = new Map<unknown, string>();
        m.set(m, "m");
        return m;
      },
    ],
    [
      "Set",
      () => {
        const s = new Set<unknown>();
        s.add(s);
        return s;
      },
    ],
    [
      "Error cause",
      () => {
        const e: Error = new Error("e");
        e.cause = e;
        return e;
      },
    ],
    [
      "object below a large part",
      () => {
        const o: Record<string, unknown> = { big: new Array(20_000).fill("x".repeat(50)) };
        o.self = o;
        return o;
      },
    ],
  ])("a cycle through an %s is rejected as a cycle", (_, make) => {
    const error = refusalOf(make());
    expect(error.code).toBe("VALUE_UNSUPPORTED");
    expect(error.message).toContain("cyclic");
  });

  test("a cycle is detected after a few rounds, not at the nesting limit", () => {
    for (const act of [codec.encode, codec.copy]) {
      let reads = 0;
      const value: Record<string, unknown> = {
        get counted() {
          return ++reads;
        },
      };
      value.self = [value];
      expect(refusal(() => act(value)).message).toContain("cyclic");
      expect(reads).toBeLessThan(20);
    }
  });

  test("any value that is put inside itself is rejected", () => {
    fc.assert(
      fc.property(anyValue, fc.integer({ min: 1, max: 30 }), (value, distance) => {
        const ring: Record<string, unknown> = { value };
        let inner: object = ring;
        for (let i = 0; i < distance; i++) inner = i % 2 === 0 ? { inner } : [inner];
        ring.back = inner;
        expect(refusalOf(ring).message).toContain("cyclic");
      }),
      { numRuns: 50 },
    );
  });
});

describe("limits", () => {
  const nested = (levels: number): unknown => {
    let value: unknown = 1;
    for (let i = 0; i < levels; i++)
      value = i % 3 === 0 ? [value] : i % 3 === 1 ? { v: value } : new Map([["k", value]]);
    return value;
  };

  test("nesting up to maxDepth is stored, one level more is rejected by every entry point and by decoding", () => {
    const narrow = createCodec({ limits: { maxDepth: 40 } });
    const narrowJson = createCodec({ serialization: "json", limits: { maxDepth: 40 } });
    expect(narrow.decode(narrow.encode(nested(40)))).toEqual(nested(40));
    expect(narrow.copy(nested(40))).toEqual(nested(40));
    for (const act of [
      () => narrow.encode(nested(41)),
      () => narrow.copy(nested(41)),
      () => narrowJson.encode(nested(41)),
      () => narrow.decode(codec.encode(nested(41))),
      () =>
        narrow.decode(jsonCodec.encode(Array.from({ length: 41 }).reduce<unknown>((inner) => [inner], 1))),
    ]) {
      expect(refusal(act).code).toBe("VALUE_TOO_LARGE");
    }
  });

  test("the deepest nesting that can be configured fits on the stack", () => {
    const deep = createCodec({ limits: { maxDepth: 1000 } });
    const value = nested(1000);
    expect(
      deep.encode(deep.copyTrusted(deep.decode(deep.encode(deep.copy(value))))).bytes.length,
    ).toBeGreaterThan(1000);
    expect(refusal(() => deep.encode(nested(1001))).path).toContain("…");
  });

  test("a value of maxBytes is stored, one byte more is rejected", () => {
    for (const serialization of ["msgpack", "json"] as const) {
      const small = createCodec({ serialization, limits: { maxBytes: 1000 } });
      const fits = "x".repeat(1000 - (serialization === "json" ? 2 : 3));
      expect(small.decode(small.encode(fits))).toBe(fits);
      expect(refusal(() => small.encode(`${fits}x`)).code).toBe("VALUE_TOO_LARGE");
      expect(refusal(() => small.decode(codec.encode(`${fits}xx`))).code).toBe("VALUE_TOO_LARGE");
    }
  });

  test("a few references that expand to billions of parts are rejected quickly", () => {
    const modest = createCodec({ limits: { maxBytes: 100_000 } });
    let value: unknown = ["leaf"];
    for (let i = 0; i < 40; i++) value = [value, value];
    expect(refusal(() => modest.encode(value)).code).toBe("VALUE_TOO_LARGE");
    expect(refusal(() => modest.copy(value)).code).toBe("VALUE_TOO_LARGE");
  });
});
