// Expired responses: revalidated with the handler, served while it runs, and served instead of its errors.
import { describe, expect, test } from "vitest";
import { moment } from "../../support/moment.ts";
import { until } from "../../support/until.ts";
import { ADAPTERS, counting, type Script, subject } from "./subject.ts";

describe.each(ADAPTERS)("on %s", (adapter) => {
  test("an expired response is revalidated with the handler's own ETag", async () => {
    const script: Script = ({ headers, call }) =>
      headers["if-none-match"] === '"v1"'
        ? { status: 304, headers: { etag: '"v1"', "x-call": `${call}` } }
        : { headers: { etag: '"v1"', "x-call": `${call}`, "x-first": "1" }, body: "the page" };
    const { ask, clock, calls } = await subject(adapter, script, { ttl: 10 });
    await ask("/");
    await clock.advance(11_000);
    const second = await ask("/");
    expect([second.status, second.body]).toEqual([200, "the page"]);
    expect([second.headers["x-call"], second.headers["x-first"]]).toEqual(["2", "1"]);
    expect(second.headers["cache-status"]).toBe("xcache; fwd=stale; fwd-status=304; stored");
    await clock.advance(9_000);
    const third = await ask("/");
    expect([third.body, third.headers.age, third.headers["x-call"]]).toEqual(["the page", "9", "2"]);
    expect(calls).toHaveLength(2);
  });

  test("the conditions of the client do not reach a handler that fills the cache", async () => {
    const script: Script = ({ headers }) =>
      headers["if-none-match"] === undefined && headers["if-modified-since"] === undefined
        ? { headers: { etag: '"v1"' }, body: "the page" }
        : { status: 304, headers: { etag: '"v1"' } };
    const { ask } = await subject(adapter, script);
    const first = await ask("/", { headers: { "if-none-match": '"v1"', "if-modified-since": "x" } });
    expect([first.status, first.body]).toEqual([304, ""]);
    expect((await ask("/")).body).toBe("the page");
  });

  test("a cookie of a 304 reaches its client and is not stored", async () => {
    const script: Script = ({ headers }) =>
      headers["if-none-match"] === undefined
        ? { headers: { etag: '"v1"' }, body: "the page" }
        : { status: 304, headers: { "set-cookie": "a=b" } };
    const { ask, clock } = await subject(adapter, script, { ttl: 10 });
    await ask("/");
    await clock.advance(11_000);
    const second = await ask("/");
    expect([second.status, second.body, second.headers["set-cookie"]]).toEqual([200, "the page", ["a=b"]]);
    const third = await ask("/");
    expect(third.headers["set-cookie"]).toEqual(["a=b"]);
    expect(third.headers["cache-status"]).toContain("fwd=stale");
  });

  test.each(["private", "no-store", "must-revalidate"])(
    "a revalidated response is stored again, although %s was added for clients",
    async (cacheControlExtra) => {
      const script: Script = ({ headers }) =>
        headers["if-none-match"] === undefined
          ? { headers: { etag: '"v1"', "cache-control": "no-transform" }, body: "the page" }
          : { status: 304, headers: { etag: '"v1"' } };
      const options = { ttl: 10, cacheControlExtra };
      const { ask, clock, calls } = await subject(adapter, script, options);
      for (const call of [1, 2, 3]) {
        await ask("/");
        const hit = await ask("/");
        expect(hit.headers["cache-status"]).toBe("xcache; hit; ttl=10");
        expect(hit.headers["cache-control"]).toBe(`no-transform, max-age=10, ${cacheControlExtra}`);
        expect(calls).toHaveLength(call);
        await clock.advance(11_000);
      }
    },
  );

  test("the age of a 304 counts", async () => {
    const script: Script = ({ headers }) => ({
      status: headers["if-none-match"] === undefined ? 200 : 304,
      headers: {
        etag: '"v1"',
        "cache-control": "max-age=10",
        ...(headers["if-none-match"] === undefined ? {} : { age: "5" }),
      },
      ...(headers["if-none-match"] === undefined ? { body: "the page" } : {}),
    });
    const { ask, clock, calls } = await subject(adapter, script);
    await ask("/");
    await clock.advance(11_000);
    await ask("/");
    expect((await ask("/")).headers.age).toBe("5");
    await clock.advance(6_000);
    await ask("/");
    expect(calls).toHaveLength(3);
  });

  test("a refresh that never ends is abandoned, and blocks no one after that", async () => {
    const { ask, clock, calls } = await subject(
      adapter,
      ({ call }) => (call === 2 ? new Promise(() => {}) : { body: `answer ${call}` }),
      { ttl: 10, staleWhileRevalidate: 20 },
    );
    await ask("/");
    await clock.advance(15_000);
    expect((await ask("/")).body).toBe("answer 1");
    await until(() => calls.length === 2, { what: "the call behind it" });
    await clock.advance(60_000);
    expect((await ask("/")).body).toBe("answer 3");
  });

  test("a refresh goes on although the client that caused it has left", async () => {
    const mayAnswer = moment();
    const hasLeft = moment();
    const { ask, clock, calls } = await subject(
      adapter,
      async ({ call }) => {
        if (call === 2) await mayAnswer.come;
        return { body: `answer ${call}` };
      },
      { ttl: 10, staleWhileRevalidate: 20 },
      ({ socket }, listen) => {
        if (calls.length === 1) socket.once("close", hasLeft.let);
        listen();
      },
    );
    await ask("/");
    await clock.advance(11_000);
    expect((await ask("/")).body).toBe("answer 1");
    await hasLeft.come;
    mayAnswer.let();
    await until(async () => (await ask("/")).body === "answer 2", { what: "the refreshed response" });
    expect(calls).toHaveLength(2);
  });

  test("stale-while-revalidate answers immediately and refreshes in the background", async () => {
    const { ask, clock, calls } = await subject(adapter, counting(), { ttl: 10, staleWhileRevalidate: 20 });
    await ask("/");
    await clock.advance(15_000);
    const stale = await ask("/");
    expect([stale.body, stale.headers.age]).toEqual(["answer 1", "15"]);
    expect(stale.headers["cache-status"]).toBe("xcache; hit; ttl=-5");
    await until(() => calls.length === 2, { what: "the call behind it" });
    await until(async () => (await ask("/")).body === "answer 2", { what: "the new response" });
    expect(calls).toHaveLength(2);
    await clock.advance(31_000);
    expect((await ask("/")).body).toBe("answer 3");
  });

  test("stale-while-revalidate of the response counts for variants as well", async () => {
    const { ask, clock, calls } = await subject(
      adapter,
      counting({ "cache-control": "max-age=10, stale-while-revalidate=30", vary: "accept" }),
    );
    await ask("/");
    await clock.advance(15_000);
    expect((await ask("/")).body).toBe("answer 1");
    await until(() => calls.length === 2, { what: "the call behind it" });
  });

  test.each(["must-revalidate", "proxy-revalidate"])("%s forbids it", async (directive) => {
    const { ask, clock } = await subject(
      adapter,
      counting({ "cache-control": `max-age=10, stale-while-revalidate=20, stale-if-error=20, ${directive}` }),
      { staleWhileRevalidate: 20 },
    );
    await ask("/");
    await clock.advance(15_000);
    expect((await ask("/")).body).toBe("answer 2");
  });

  test("stale-if-error replaces a 5xx, but not beyond its window or after an invalidation", async () => {
    const script: Script = ({ call }) =>
      call === 1
        ? { headers: { "x-page": "1" }, body: "the page" }
        : { status: 503, headers: { "x-bad": "1" }, body: "bad" };
    const { ask, clock, cache } = await subject(adapter, script, {
      ttl: 10,
      staleIfError: 30,
      tags: ["all"],
    });
    await ask("/");
    await clock.advance(15_000);
    const stale = await ask("/");
    expect([stale.status, stale.body, stale.headers["x-page"], stale.headers["x-bad"]]).toEqual([
      200,
      "the page",
      "1",
      undefined,
    ]);
    expect(stale.headers["cache-status"]).toBe("xcache; hit; ttl=-5");
    await clock.advance(20_000);
    expect((await ask("/", {})).status).toBe(200);
    await cache.invalidateTags("all");
    const bad = await ask("/");
    expect([bad.status, bad.body, bad.headers["x-bad"]]).toEqual([503, "bad", "1"]);
  });

  test.each([1, 1_000])("stale-if-error holds %i ms after the expiry", async (ms) => {
    const { ask, clock, calls } = await subject(
      adapter,
      ({ call }) => (call === 1 ? { body: "the page" } : { status: 503, body: "bad" }),
      { ttl: 10, staleIfError: 30 },
    );
    await ask("/");
    await clock.advance(10_000 + ms);
    const answers = await Promise.all([ask("/"), ask("/")]);
    expect(answers.map(({ body }) => body)).toEqual(["the page", "the page"]);
    expect(calls.length).toBeLessThanOrEqual(3);
  });

  test("an invalidation while the handler fails is not undone by stale-if-error", async () => {
    let invalidate = async (): Promise<void> => {};
    const script: Script = async ({ call }) => {
      if (call === 1) return { body: "the page" };
      await invalidate();
      return { status: 500, headers: { "x-bad": "1" }, body: "bad" };
    };
    const { ask, clock, cache } = await subject(adapter, script, {
      ttl: 10,
      staleIfError: 30,
      tags: ["all"],
    });
    invalidate = () => cache.invalidateTags("all");
    await ask("/");
    await clock.advance(15_000);
    const answer = await ask("/");
    expect([answer.status, answer.body, answer.headers["x-bad"]]).toEqual([500, "bad", "1"]);
  });

  test("requests waiting for a failing handler get the stale response as well", async () => {
    const { ask, clock, calls } = await subject(
      adapter,
      async ({ call }) => {
        if (call === 1) return { body: "the page" };
        for (let turn = 0; turn < 50; turn++) await new Promise((resume) => setImmediate(resume));
        return { status: 500, body: "bad" };
      },
      { ttl: 10, staleIfError: 30 },
    );
    await ask("/");
    await clock.advance(15_000);
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask("/")));
    expect(answers.map(({ body }) => body)).toEqual(Array(4).fill("the page"));
    expect(calls.length).toBeLessThan(4);
  });

  test("no-cache of the handler is stored with its validator and revalidated every time", async () => {
    const script: Script = ({ headers }) =>
      headers["if-none-match"] === '"v1"'
        ? { status: 304, headers: { etag: '"v1"', "cache-control": "no-cache" } }
        : { headers: { etag: '"v1"', "cache-control": "no-cache" }, body: "the page" };
    const { ask, calls, clock } = await subject(adapter, script);
    for (let time = 0; time < 3; time++) {
      expect((await ask("/")).body).toBe("the page");
      await clock.advance(1_000);
    }
    expect(calls.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"v1"', '"v1"']);
  });
});

describe("on fetch", () => {
  test("a throwing handler is covered by the stale response within the window; beyond it the error is thrown", async () => {
    const { HTTPCacheMiddleware, httpCache } = await import("../../../src/web/fetch.ts");
    const { memoryCache } = await import("../cache/memory-cache.ts");
    const { cache, clock } = memoryCache();
    let call = 0;
    const handler = httpCache(new HTTPCacheMiddleware({ cache, ttl: 10, staleIfError: 30 }, clock))(() => {
      if (++call > 1) throw new Error("broken");
      return new Response("the page");
    });
    const get = () => handler(new Request("http://site.test/"));
    await get();
    await clock.advance(15_000);
    expect(await (await get()).text()).toBe("the page");
    await clock.advance(60_000);
    await expect(get()).rejects.toThrow("broken");
  });
});
