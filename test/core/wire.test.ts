import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  fromWire,
  isPlainRecord,
  toCamel,
  toSnake,
  toWire,
  type Unwire,
  type Wire,
} from "../../src/core/wire.ts";

/** Names as spelled in code: no underscore, so that each has one spelling on the wire. */
const camelName = fc.stringMatching(/^[a-z][a-zA-Z0-9]{0,12}$/);
const snakeName = fc.stringMatching(/^[a-z][a-z0-9]{0,4}(_[a-z][a-z0-9]{0,4}){0,3}$/);

const leaf = fc.oneof(
  fc.string(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant(undefined),
  fc.bigInt(),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ maxLength: 4 }),
);

const { record } = fc.letrec<{ record: Record<string, unknown>; value: unknown }>((tie) => ({
  record: fc.dictionary(camelName, tie("value"), { maxKeys: 5 }),
  value: fc.oneof({ depthSize: "small" }, leaf, tie("record"), fc.array(tie("value"), { maxLength: 3 })),
}));

describe("names", () => {
  it.each([
    ["kvUrl", "kv_url"],
    ["defaultTtl", "default_ttl"],
    ["p95", "p95"],
    ["metricsRetentionDays", "metrics_retention_days"],
    ["a", "a"],
    ["", ""],
  ])("%s is spelled %s on the wire, and back", (camel, snake) => {
    expect(toSnake(camel)).toBe(snake);
    expect(toCamel(snake)).toBe(camel);
  });

  it("every camelCase name survives the round trip to the wire", () => {
    fc.assert(fc.property(camelName, (name) => toCamel(toSnake(name)) === name));
  });

  it("every snake_case name survives the round trip into code", () => {
    fc.assert(fc.property(snakeName, (name) => toSnake(toCamel(name)) === name));
  });
});

describe("records", () => {
  it("every record survives the round trip to the wire, at any depth", () => {
    fc.assert(
      fc.property(record, (given) => {
        expect(fromWire<unknown>(toWire<unknown>(given))).toEqual(given);
      }),
    );
  });

  it("no field name on the wire has a capital letter", () => {
    const namesOf = (value: unknown): string[] => {
      if (Array.isArray(value)) return value.flatMap(namesOf);
      if (!isPlainRecord(value)) return [];
      return Object.entries(value).flatMap(([name, member]) => [name, ...namesOf(member)]);
    };
    fc.assert(
      fc.property(record, (given) => namesOf(toWire<unknown>(given)).every((name) => !/[A-Z]/.test(name))),
    );
  });

  it("the given record is not modified", () => {
    const given = Object.freeze({ circuitBreaker: Object.freeze({ openedAt: 1 }) });
    expect(toWire(given)).toEqual({ circuit_breaker: { opened_at: 1 } });
    expect(given).toEqual({ circuitBreaker: { openedAt: 1 } });
  });

  it("keys chosen by the user stay as they are, the fields inside them do not", () => {
    const given = {
      tables: { userOrders: { maxAge: 1 }, snake_too: { maxAge: 2 } } as Record<string, { maxAge: number }>,
    };
    const wire = toWire(given, ["tables"]);
    expect(wire).toEqual({ tables: { userOrders: { max_age: 1 }, snake_too: { max_age: 2 } } });
    expect(fromWire(wire, ["tables"])).toEqual(given);
  });

  it("instances, functions and bytes are passed through untouched", () => {
    class Clock {
      nowMs = 1;
    }
    const given = {
      aDate: new Date(0),
      aClock: new Clock(),
      bytes: new Uint8Array([1]),
      run: () => 1,
      aMap: new Map([["aKey", 1]]),
    };
    const wire = toWire<Record<string, unknown>>(given);
    expect(wire).toEqual({
      a_date: given.aDate,
      a_clock: given.aClock,
      bytes: given.bytes,
      run: given.run,
      a_map: given.aMap,
    });
    expect(wire.a_clock).toBe(given.aClock);
  });

  it("a __proto__ key stays an own property and changes no prototype", () => {
    const given = JSON.parse('{"__proto__": {"isAdmin": true}}') as unknown;
    const wire = toWire(given);
    expect(Object.keys(wire as object)).toEqual(["__proto__"]);
    expect((wire as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });
});

describe("types", () => {
  interface Health {
    readonly kvConnected: boolean;
    readonly openedAt?: number;
    readonly connectionPool: { readonly inUse: number };
    readonly checks: readonly { readonly checkName: string }[];
    readonly byTable: Readonly<Record<string, { readonly totalHits: number }>>;
  }
  interface WireHealth {
    readonly kv_connected: boolean;
    readonly opened_at?: number;
    readonly connection_pool: { readonly in_use: number };
    readonly checks: readonly { readonly check_name: string }[];
    readonly by_table: Readonly<Record<string, { readonly total_hits: number }>>;
  }

  it("the type of a wire record spells its fields as the value does", () => {
    expectTypeOf<Wire<Health>>().toEqualTypeOf<WireHealth>();
    expectTypeOf<Unwire<WireHealth>>().toEqualTypeOf<Health>();
    expectTypeOf(toSnake("metricsRetentionDays")).toEqualTypeOf<"metrics_retention_days">();
    expectTypeOf(toCamel("p95_latency_seconds")).toEqualTypeOf<"p95LatencySeconds">();
    expectTypeOf<Wire<Date | bigint | null>>().toEqualTypeOf<Date | bigint | null>();
  });

  it("a record with keys chosen by the user cannot be converted without naming them", () => {
    const health: Health = {
      kvConnected: true,
      connectionPool: { inUse: 1 },
      checks: [],
      byTable: { aB: { totalHits: 1 } },
    };
    // @ts-expect-error byTable must be named
    toWire(health);
    // @ts-expect-error connectionPool has fixed fields
    toWire(health, ["connectionPool"]);
    expect(toWire(health, ["byTable"]).by_table).toEqual({ aB: { total_hits: 1 } });
  });
});
