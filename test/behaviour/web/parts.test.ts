// The pure parts: directives, dates, tags, ranges, policies, options.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import {
  bodyOf,
  decodeHead,
  encodeResponse,
  type StoredHead,
  textOf,
} from "../../../src/web/engine/stored-response.ts";
import { parseCacheControl, parseTargeted } from "../../../src/web/protocol/cache-control.ts";
import { noneMatchHolds } from "../../../src/web/protocol/etag.ts";
import { formatHttpDate, parseHttpDate } from "../../../src/web/protocol/http-date.ts";
import { pathExclusion } from "../../../src/web/protocol/path-exclusion.ts";
import { isPersonal, type PolicyInput, storagePlan } from "../../../src/web/protocol/policy.ts";
import { rangeOf } from "../../../src/web/protocol/range.ts";
import { memoryCache } from "../cache/memory-cache.ts";

const NOW = Date.UTC(2026, 10, 15);

describe("directives", () => {
  test.each([
    ["max-age=5", 5],
    ["MAX-AGE=5", 5],
    ['max-age="5"', 5],
    ["max-age=005", 5],
    ["max-age=99999999999", 2 ** 31],
    ["max-age=5, max-age=3", 3],
    ['ext="max-age=9", max-age=5', 5],
    ['ext="a\\"b, max-age=9", max-age=5', 5],
    ["max-age", 0],
    ["max-age=", 0],
    ["max-age=-1", 0],
    ["max-age=5.0", 0],
    ["max-age='5'", 0],
    ["max-age =5", 0],
    ["max-age= 5", 0],
    ["max-age=5a", 0],
    ["public", undefined],
  ])("%s means %s seconds", (text, seconds) => {
    expect(parseCacheControl(text).seconds("max-age")).toBe(seconds);
  });

  test.each([
    ["no-store;no-cache", true],
    ["Private; max-age=5", true],
    ["max-age=5; private", true],
    ["max-age=5 no-store", true],
    ["max-age=5, public/no-cache", true],
    ['ext="a" private', true],
    [" no-store ,\tprivate", false],
    ['private="x-user", no-cache=set-cookie', false],
    ['ext="max-age=5; private \\" no-store"', false],
    ["max-age=5; x-private", false],
    ["max-age = 5, foo bar", false],
  ])("a malformed directive of %s hides one that forbids storing: %s", (text, isHidden) => {
    expect(parseCacheControl(text).isBroken).toBe(isHidden);
  });

  test("a lifetime that is added last and hides private is personal", () => {
    const judged = ["Cache-Control", "max-age=5"];
    expect(isPersonal(["Cache-Control", "private; max-age=5"], judged)).toBe(true);
    expect(isPersonal(["Cache-Control", "max-age=3"], judged)).toBe(false);
  });

  test.each([
    ["max-age=5", 5],
    ["foo, max-age=5;a=1, bar=(", undefined],
    ["foo;a=1;b=?0, max-age=5", 5],
    ['foo="x\\"y", max-age=5', 5],
    ['max-age="5"', undefined],
    ["max-age=5.5", undefined],
    ["max-age=5,", undefined],
    ["Max-Age=5", undefined],
    ["max-age=5, &", undefined],
    ["foo", undefined],
    ["", undefined],
  ])("the targeted field %s means %s seconds", (text, seconds) => {
    expect(parseTargeted(text)?.seconds("max-age")).toBe(seconds);
  });

  test("no input makes the parsers throw, and directives that forbid storing are found anywhere", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        parseTargeted(before);
        const isQuoted = (before.replaceAll(/\\./g, "").split('"').length - 1) % 2 === 1;
        const directives = parseCacheControl(`${before},no-store,${after}`);
        if (!isQuoted && !before.includes("\\")) expect(directives.has("no-store")).toBe(true);
        else expect(typeof directives.isBroken).toBe("boolean");
      }),
    );
  });
});

describe("dates", () => {
  test.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"],
    ["SUN, 06 nov 1994 08:49:37 gmt", "1994-11-06T08:49:37.000Z"],
    ["Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37.000Z"],
    ["Thursday, 18-Aug-50 02:01:18 GMT", "2050-08-18T02:01:18.000Z"],
    ["Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37.000Z"],
  ])("%s is %s", (text, iso) => {
    expect(new Date(parseHttpDate(text, NOW)!).toISOString()).toBe(iso);
  });

  test.each([
    "0",
    "",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 31 Feb 1994 08:49:37 GMT",
    "Sun, 06 Nov 94 08:49:37 GMT",
    "Sun, 06-Nov-1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:49:37 GMT",
    "1994-11-06T08:49:37Z",
    `Sun, 06 Nov 1994 08:49:37 GMT${" ".repeat(100)}`,
  ])("%j is none", (text) => expect(parseHttpDate(text, NOW)).toBeUndefined());

  test("a formatted date parses back", () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true }), (date) => {
        const second = Math.floor(date.getTime() / 1_000) * 1_000;
        expect(parseHttpDate(formatHttpDate(second), NOW)).toBe(second);
      }),
    );
  });
});

test.each([
  ['"a"', '"a"', true],
  ['W/"a"', '"a"', true],
  ['"b", W/"a"', 'W/"a"', true],
  ['"b,a"', '"b,a"', true],
  ['"b,"a""', '"a"', false],
  ["*", '"a"', true],
  ["a", '"a"', false],
  ["", '"a"', false],
])("If-None-Match: %s against %s", (field, etag, holds) => {
  expect(noneMatchHolds(field, etag)).toBe(holds);
});

test("a range lies within the body or is refused", () => {
  fc.assert(
    fc.property(fc.nat(50), fc.nat(60), fc.nat(60), (length, first, last) => {
      for (const text of [`bytes=${first}-${last}`, `bytes=${first}-`, `bytes=-${last}`]) {
        const range = rangeOf(text, length);
        if (range === undefined || range === "unsatisfiable") continue;
        expect(range.start).toBeGreaterThanOrEqual(0);
        expect(range.end).toBeGreaterThan(range.start);
        expect(range.end).toBeLessThanOrEqual(length);
      }
    }),
  );
});

test("an excluded path is found behind encodings, dots, slashes and hosts", () => {
  const isExcluded = pathExclusion(["/admin"])!;
  for (const target of [
    "/admin",
    "/Admin?x",
    "/%41dmin",
    "/%2561dmin",
    "/./admin",
    "/a/../admin",
    "/a/%2e%2e/admin",
    "\\admin",
    "//admin/x",
    "/%5cadmin",
    "http://site.test/admin",
    `/%${"25".repeat(30)}61dmin`,
  ]) {
    expect(isExcluded(target), target).toBe(true);
  }
  for (const target of ["/", "/adm", "/x/admin", "/x?/admin", "/%ff", "http://admin/x"]) {
    expect(isExcluded(target), target).toBe(false);
  }
  expect(pathExclusion([])).toBeUndefined();
});

describe("the policy", () => {
  const plan = (headers: Record<string, string>, more: Partial<PolicyInput> & { status?: number } = {}) =>
    storagePlan(
      { status: more.status ?? 200, message: "", headers: Object.entries(headers).flat() },
      {
        cacheNonOk: false,
        ttl: () => 60,
        staleWhileRevalidate: 0,
        staleIfError: 0,
        obeysMaxStale: false,
        requestedAt: NOW,
        now: NOW,
        ...more,
      },
    );

  test.each<[Record<string, string>, object, string]>([
    [{}, { status: 206, cacheNonOk: true }, "status"],
    [{}, { status: 304, cacheNonOk: true }, "status"],
    [{}, { status: 404 }, "status"],
    [{ "Set-Cookie": "a=b", "Cache-Control": "public" }, {}, "set-cookie"],
    [{ Vary: "accept, *" }, {}, "vary"],
    [{ "Content-Type": "text/event-stream; charset=utf-8" }, {}, "stream"],
    [{ "Cache-Control": 'max-age=5, a="b' }, {}, "malformed"],
    [{ "Cache-Control": "private" }, {}, "private"],
    [{ "Cache-Control": "no-store" }, {}, "no-store"],
    [{ "Cache-Control": "no-store, must-understand" }, { status: 599, cacheNonOk: true }, "status"],
    [{ "Cache-Control": "max-age=0" }, {}, "stale"],
    [{ "Cache-Control": "no-cache" }, {}, "stale"],
    [{ Expires: "0" }, {}, "stale"],
    [{}, { ttl: () => 0 }, "no-lifetime"],
    [{ "Cache-Control": "public" }, { ttl: () => 0 }, "no-lifetime"],
    [{ "Cache-Control": "max-age=60", "CDN-Cache-Control": "no-store" }, {}, "no-store"],
  ])("%j with %j is refused: %s", (headers, more, refusal) => expect(plan(headers, more)).toBe(refusal));

  test("must-understand overrides no-store for known statuses", () => {
    expect(plan({ "Cache-Control": "max-age=5, no-store, must-understand" })).toMatchObject({
      lifetimeMs: 5_000,
    });
  });

  test("a response that arrives stale is kept for clients that accept it, unless it must be revalidated", () => {
    const date = formatHttpDate(NOW - 1_000);
    const arrives = (control: string, obeysMaxStale: boolean) =>
      plan({ "Cache-Control": control, Date: date }, { obeysMaxStale });
    expect(arrives("max-age=1", false)).toBe("stale");
    expect(arrives("max-age=1", true)).toMatchObject({ bornAt: NOW - 1_000, lifetimeMs: 1_000 });
    for (const control of ["max-age=1, must-revalidate", "s-maxage=1", "no-cache"])
      expect(arrives(control, true), control).toBe("stale");
  });

  test("s-maxage forbids stale answers unless the handler allows them", () => {
    const usual = { staleWhileRevalidate: 30, staleIfError: 30 };
    expect(plan({}, usual)).toMatchObject({ staleWhileRevalidateMs: 30_000, staleIfErrorMs: 30_000 });
    expect(plan({ "Cache-Control": "s-maxage=5" }, usual)).toMatchObject({
      staleWhileRevalidateMs: 0,
      staleIfErrorMs: 0,
    });
    expect(plan({ "Cache-Control": "s-maxage=5, stale-while-revalidate=9" }, usual)).toMatchObject({
      staleWhileRevalidateMs: 9_000,
    });
  });

  test("the age counts from the Date and the Age of the response", () => {
    const date = formatHttpDate(NOW - 10_000);
    expect(plan({ "Cache-Control": "max-age=60", Date: date })).toMatchObject({ bornAt: NOW - 10_000 });
    expect(plan({ "Cache-Control": "max-age=60", Age: "20", Date: date })).toMatchObject({
      bornAt: NOW - 20_000,
    });
    expect(plan({ "Cache-Control": "max-age=60", Age: "20" }, { requestedAt: NOW - 3_000 })).toMatchObject({
      bornAt: NOW - 23_000,
    });
    expect(plan({}, { requestedAt: NOW - 3_000 })).toMatchObject({ bornAt: NOW });
  });
});

test("a body of any bytes survives storage", () => {
  const head: StoredHead = {
    status: 200,
    message: "",
    headers: ["X-A", "é\n"],
    bornAt: 1,
    lifetimeMs: 2,
    staleWhileRevalidateMs: 0,
    staleIfErrorMs: 0,
    mustRevalidate: false,
    isOwnValidator: false,
  };
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.string().map((text) => Buffer.from(text)),
      ),
      (body) => {
        const value = encodeResponse("0123456789a", head, body);
        const { head: decoded, bodyAt } = decodeHead(textOf(value)!);
        const back = bodyOf(value, bodyAt);
        expect(decoded).toEqual(head);
        expect(Buffer.compare(typeof back === "string" ? Buffer.from(back, "latin1") : back, body)).toBe(0);
      },
    ),
  );
});

test.each<[string, object, RegExp]>([
  ["no cache", { cache: {} }, /cache must be an XCache; got an object/],
  [
    "a negative ttl",
    { ttl: -1 },
    /ttl must be a number of seconds of at least 0, or a function, or a text such as .*; got -1/,
  ],
  ["a ttl that is text", { ttl: "60" }, /ttl must be .* got "60"/],
  ["an unknown option", { tll: 1 }, /unknown option "tll".*ttl/],
  ["a key builder that is none", { keyBuilder: "x" }, /keyBuilder must be a function/],
  [
    "a method that needs a key builder",
    { methods: ["GET", "post"] },
    /methods may include POST only with a keyBuilder/,
  ],
  ["a method that is none", { methods: ["G T"] }, /methods must be a list of HTTP methods/],
  ["paths that are no list", { excludePaths: "/a" }, /excludePaths must be a list/],
  ["an empty path", { excludePaths: [""] }, /excludePaths must be a list/],
  ["a directive with a line break", { cacheControlExtra: "a\r\nb: c" }, /cacheControlExtra must be/],
  ["a field name with a blank", { varyBy: ["a b"] }, /varyBy must be a list of field names/],
  ["an etag of another kind", { etag: "medium" }, /etag must be "weak" or "strong"/],
  ["another status header", { statusHeader: "X" }, /statusHeader must be/],
  ["a flag that is none", { strict: 1 }, /strict must be true or false/],
  ["too few bytes", { maxBodyBytes: -1 }, /maxBodyBytes must be a number of at least 0/],
  ["a tag that is none", { tags: [""] }, /tag must be a non-empty string/],
])("options with %s are refused at once", (_, options, message) => {
  const { cache } = memoryCache();
  expect(() => new HTTPCacheMiddleware({ cache, ...options })).toThrow(message);
});
