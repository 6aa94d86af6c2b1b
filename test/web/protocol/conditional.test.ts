// Conditions, ranges, directives of clients, unsafe methods, and Vary, on every adapter.
import { describe, expect, test } from "vitest";
import { formatHttpDate } from "../../../src/web/protocol/http-date.ts";
import { ADAPTERS, counting, subject } from "../../behaviour/web/subject.ts";

describe.each(ADAPTERS)("on %s", (adapter) => {
  test("If-Modified-Since counts only without If-None-Match", async () => {
    const then = formatHttpDate(Date.UTC(2020, 0, 1));
    const earlier = formatHttpDate(Date.UTC(2019, 0, 1));
    const { ask } = await subject(adapter, counting({ "last-modified": then, etag: '"v1"' }));
    await ask("/");
    const status = async (headers: Record<string, string>) => (await ask("/", { headers })).status;
    expect(await status({ "if-modified-since": then })).toBe(304);
    expect(await status({ "if-modified-since": earlier })).toBe(200);
    expect(await status({ "if-modified-since": "tomorrow" })).toBe(200);
    expect(await status({ "if-modified-since": then, "if-none-match": '"v2"' })).toBe(200);
    expect(await status({ "if-modified-since": earlier, "if-none-match": '"v1"' })).toBe(304);
  });

  test("If-Match and If-Unmodified-Since are left to the handler", async () => {
    const { ask, calls } = await subject(adapter, counting());
    await ask("/");
    for (const [name, value] of [
      ["if-match", '"x"'],
      ["if-unmodified-since", "Wed, 01 Jan 2020 00:00:00 GMT"],
    ] as const) {
      const { headers } = await ask("/", { headers: { [name]: value } });
      expect(headers["cache-status"]).toBe("xcache; fwd=bypass; detail=precondition");
      expect(calls.at(-1)?.headers[name]).toBe(value);
    }
  });

  test("an upgrade request is left to the handler", async () => {
    const { ask } = await subject(adapter, counting());
    await ask("/");
    const { body, headers } = await ask("/", { headers: { upgrade: "websocket" } });
    expect([body, headers["cache-status"]]).toEqual(["answer 2", "xcache; fwd=bypass; detail=upgrade"]);
  });

  test("a range is served from a complete stored body, and passes through without one", async () => {
    const { ask, calls } = await subject(adapter, ({ headers }) =>
      headers.range === undefined
        ? { headers: { etag: '"v1"', "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT" }, body: "0123456789" }
        : { status: 206, headers: { "content-range": "bytes 0-1/10" }, body: "01" },
    );
    const part = async (range: string, more = {}) => {
      const { status, body, headers } = await ask("/", { headers: { range, ...more } });
      return [status, body, headers["content-range"]];
    };
    expect(await part("bytes=0-1")).toEqual([206, "01", "bytes 0-1/10"]);
    expect((await ask("/")).body).toBe("0123456789");
    expect(calls).toHaveLength(2);
    expect(await part("bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"]);
    expect(await part("bytes=7-")).toEqual([206, "789", "bytes 7-9/10"]);
    expect(await part("bytes=-3")).toEqual([206, "789", "bytes 7-9/10"]);
    expect(await part("bytes=5-99")).toEqual([206, "56789", "bytes 5-9/10"]);
    expect(await part("bytes=10-")).toEqual([416, "", "bytes */10"]);
    for (const ignored of ["bytes=0-1,3-4", "bytes=4-2", "lines=1-2", "bytes=-", "bytes=a-b"]) {
      expect(await part(ignored), ignored).toEqual([200, "0123456789", undefined]);
    }
    expect(await part("bytes=0-1", { "if-range": '"v1"' })).toEqual([206, "01", "bytes 0-1/10"]);
    expect(await part("bytes=0-1", { "if-range": "Wed, 01 Jan 2020 00:00:00 GMT" })).toContain(206);
    expect(await part("bytes=0-1", { "if-range": '"v2"' })).toContain(200);
    expect(await part("bytes=0-1", { "if-range": 'W/"v1"' })).toContain(200);
    expect(calls).toHaveLength(2);
  });

  test("a 416 carries nothing that describes the stored body or its lifetime", async () => {
    const { ask } = await subject(adapter, () => ({
      headers: {
        etag: '"v1"',
        "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT",
        "cache-control": "public, max-age=60",
        expires: "Wed, 01 Jan 2070 00:00:00 GMT",
        "content-type": "text/plain",
        "content-language": "en",
        "content-disposition": "inline",
        vary: "accept",
        "x-own": "kept",
      },
      body: "0123456789",
    }));
    await ask("/");
    const { status, headers } = await ask("/", { headers: { range: "bytes=10-" } });
    const names = ["cache-control", "content-disposition", "content-language", "content-type", "etag"];
    const found = [...names, "expires", "last-modified"].filter((name) => headers[name] !== undefined);
    expect([status, found]).toEqual([416, []]);
    expect([headers["content-range"], headers.vary, headers["x-own"]]).toEqual([
      "bytes */10",
      "accept",
      "kept",
    ]);
  });

  test("no-store and only-if-cached of a request are always obeyed", async () => {
    const { ask, calls } = await subject(adapter, counting());
    const missing = await ask("/", { headers: { "cache-control": "only-if-cached" } });
    expect([missing.status, calls.length]).toEqual([504, 0]);
    await ask("/", { headers: { "cache-control": "no-store" } });
    await ask("/");
    expect(calls).toHaveLength(2);
    expect((await ask("/", { headers: { "cache-control": "only-if-cached" } })).body).toBe("answer 2");
  });

  test("no-cache, max-age, min-fresh and max-stale of a request count only with clientDirectives", async () => {
    for (const clientDirectives of [false, true]) {
      const { ask, clock, calls } = await subject(adapter, counting(), { clientDirectives });
      await ask("/");
      await clock.advance(5_000);
      for (const directive of ["no-cache", "max-age=3", "min-fresh=58"]) {
        const answer = await ask("/", { headers: { "cache-control": directive } });
        expect(answer.body === "answer 1", directive).toBe(!clientDirectives);
        if (clientDirectives) expect(answer.headers["cache-status"]).toContain("fwd=request");
        await clock.advance(5_000);
      }
      await clock.advance(60_000);
      const before = clientDirectives ? "answer 4" : "answer 1";
      const stale = await ask("/", { headers: { "cache-control": "max-stale=30" } });
      expect(stale.body === before, "max-stale").toBe(clientDirectives);
      expect(calls).toHaveLength(clientDirectives ? 4 : 2);
    }
  });

  test("max-stale accepts a response that was already stale on arrival", async () => {
    const { ask, clock, calls } = await subject(
      adapter,
      ({ call }) => ({
        headers: { "cache-control": "max-age=1", date: formatHttpDate(clock.now() - 1_000) },
        body: `answer ${call}`,
      }),
      { clientDirectives: true, ttl: 0 },
    );
    const stored = await ask("/");
    expect(stored.headers["cache-status"]).toBe("xcache; fwd=uri-miss; stored");
    await clock.advance(3_000);
    const stale = await ask("/", { headers: { "cache-control": "max-stale=1000" } });
    expect([stale.body, stale.headers.age, calls.length]).toEqual(["answer 1", "4", 1]);
    expect((await ask("/")).body).toBe("answer 2");
  });

  test.each(["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"])(
    "%s that succeeds invalidates its URL",
    async (method) => {
      for (const options of [{}, { keyBuilder: () => "any key" }]) {
        const { ask } = await subject(
          adapter,
          ({ call, url }) => ({ status: url === "/fails" ? 500 : 200, body: `answer ${call}` }),
          { ...options, cacheNonOk: true },
        );
        await ask("/page");
        await ask("/page", { method });
        expect((await ask("/page")).body).toBe("answer 3");
      }
      const { ask } = await subject(adapter, ({ call, method: used }) => ({
        status: used === method ? 500 : 200,
        body: `answer ${call}`,
      }));
      await ask("/page");
      await ask("/page", { method });
      expect((await ask("/page")).body).toBe("answer 1");
    },
  );

  test("an unsafe request invalidates Location and Content-Location of the same origin, and all variants", async () => {
    const { ask } = await subject(adapter, ({ call, method, url }) => {
      if (method !== "POST") return { headers: { vary: "accept" }, body: `answer ${call}` };
      const [location, content] =
        url === "/same" ? ["/a", "http://site.test/b"] : ["http://other.test/a", "//other.test/b"];
      return { status: 201, headers: { location, "content-location": content } };
    });
    const all = async () => {
      const bodies = [];
      for (const path of ["/a", "/b"]) {
        for (const accept of ["x", "y"]) bodies.push((await ask(path, { headers: { accept } })).body);
      }
      return bodies;
    };
    const before = await all();
    expect(await all()).toEqual(before);
    await ask("/foreign", { method: "POST" });
    expect(await all()).toEqual(before);
    await ask("/same", { method: "POST" });
    const after = await all();
    for (const body of after) expect(before).not.toContain(body);
  });

  test("variants are selected by normalised request fields; more fields may come later", async () => {
    const { ask, calls } = await subject(adapter, ({ call, headers }) => ({
      headers: { vary: call < 3 ? "Accept-Language" : "accept-language, X-Late" },
      body: `${headers["accept-language"]} ${headers["x-late"]} ${call}`,
    }));
    const as = async (language: string, late?: string) =>
      (
        await ask("/", {
          headers: { "accept-language": language, ...(late === undefined ? {} : { "x-late": late }) },
        })
      ).body;
    const first = await as("en, de;q=1.0");
    for (const same of ["en,de", "DE , en", "de;q=1,EN"]) expect(await as(same)).toBe(first);
    expect(calls).toHaveLength(1);
    expect(await as("fr")).not.toBe(first);
    const late = await as("it", "a");
    expect(late).toBe("it a 3");
    expect(await as("it", "b")).toBe("it b 4");
    expect(await as("it", "a")).toBe("it a 5");
    expect(await as("it", "a")).toBe("it a 5");
    expect(await as("it", "b")).toBe("it b 4");
  });

  test("Vary: * is never stored, on whichever line it stands", async () => {
    for (const vary of ["*", "accept, *", ["accept", "*"]]) {
      const { ask } = await subject(adapter, counting({ vary, "cache-control": "max-age=60" }));
      await ask("/");
      expect((await ask("/")).body).toBe("answer 2");
    }
  });

  test("the handler's own lifetime wins over ttl", async () => {
    const lasts = async (headers: Record<string, string | string[]>, seconds: number, ttl = 60) => {
      const { ask, clock } = await subject(adapter, counting(headers), { ttl });
      const first = await ask("/");
      if (headers["cache-control"] !== undefined) {
        expect(first.headers["cache-control"]).toBe([headers["cache-control"]].flat().join(", "));
      }
      await clock.advance(seconds * 1_000 - 1);
      expect((await ask("/")).body, `${JSON.stringify(headers)} before`).toBe("answer 1");
      await clock.advance(1);
      expect((await ask("/")).body, `${JSON.stringify(headers)} after`).toBe("answer 2");
    };
    await lasts({ "cache-control": "max-age=5" }, 5);
    await lasts({ "cache-control": "max-age=5, s-maxage=9" }, 9, 0);
    await lasts({ "cache-control": "max-age=20, max-age=5" }, 5);
    await lasts({ "cache-control": "max-age=5", "cdn-cache-control": "max-age=9" }, 9);
    await lasts({ "cache-control": "max-age=5", "cdn-cache-control": "max-age=9, &" }, 5);
    await lasts({ expires: formatHttpDate(Date.UTC(2026, 0, 1, 0, 0, 7)) }, 7);
    await lasts({ "cache-control": "max-age=30", age: "20" }, 10);
  });

  test("ttl 0 stores only what the handler marked cacheable", async () => {
    const plain = await subject(adapter, counting(), { ttl: 0 });
    const first = await plain.ask("/");
    expect(first.headers["cache-control"]).toBeUndefined();
    expect((await plain.ask("/")).body).toBe("answer 2");
    const marked = await subject(adapter, counting({ "cache-control": "max-age=5" }), { ttl: 0 });
    await marked.ask("/");
    expect((await marked.ask("/")).body).toBe("answer 1");
  });
});
