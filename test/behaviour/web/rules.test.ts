// The ten rules of the HTTP cache and its options, on every adapter.
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ADAPTERS, counting, headerOf, subject } from "./subject.ts";

describe.each(ADAPTERS)("on %s", (adapter) => {
  test("a second request for the same URL is answered from the cache (rules 1 and 2)", async () => {
    const { ask, calls } = await subject(adapter, counting({ "content-type": "text/x-test" }));
    await ask("/page?a=1");
    const second = await ask("/page?a=1");
    expect(calls).toHaveLength(1);
    expect(second.body).toBe("answer 1");
    expect(second.headers["content-type"]).toContain("text/x-test");
    expect(second.headers["cache-status"]).toBe("xcache; hit; ttl=60");
    expect(second.headers.age).toBe("0");
  });

  test("path, query and host are all part of the key (rule 1)", async () => {
    const { ask } = await subject(adapter, counting());
    const bodies = [];
    for (const path of ["/a", "/a?", "/a?b=1", "/a?b=2", "/A", "/a/", "/a%2f"])
      bodies.push((await ask(path)).body);
    bodies.push((await ask("/a", { headers: { host: "other.test" } })).body);
    bodies.push((await ask("/a", { headers: { host: "site.test:81" } })).body);
    expect(new Set(bodies).size).toBe(bodies.length);
    expect((await ask("/a", { headers: { host: "SITE.test" } })).body).toBe(bodies[0]);
  });

  test("a matching If-None-Match gets 304 without a body (rule 2)", async () => {
    const { ask, calls } = await subject(adapter, counting({ "content-type": "text/plain", "x-other": "1" }));
    const { etag } = (await ask("/")).headers;
    for (const field of [etag!, `"other", ${etag}`, `${etag}, "other"`, etag!.replace("W/", ""), "*"]) {
      const answer = await ask("/", { headers: { "if-none-match": field } });
      expect([answer.status, answer.body], field).toEqual([304, ""]);
      expect(answer.headers.etag).toBe(etag);
      expect(answer.headers["cache-control"]).toBe("max-age=60");
      for (const name of ["content-type", "content-length", "content-encoding", "x-other"]) {
        expect(answer.headers[name], name).toBeUndefined();
      }
    }
    expect((await ask("/", { headers: { "if-none-match": '"other"' } })).status).toBe(200);
    expect(calls).toHaveLength(1);
  });

  test("a miss is stored, and ETag and Cache-Control are added (rules 3, 4 and 5)", async () => {
    const { ask } = await subject(adapter, counting());
    const first = await ask("/");
    expect(first.headers.etag).toMatch(/^W\/"[\w-]{22}"$/);
    expect(first.headers["cache-control"]).toBe("max-age=60");
    expect(first.headers["cache-status"]).toBe("xcache; fwd=uri-miss; stored");
    expect(first.headers.age).toBeUndefined();
    const second = await ask("/");
    expect(second.headers.etag).toBe(first.headers.etag);
    expect(second.headers["cache-control"]).toBe("max-age=60");
  });

  test("the ETag is made from the body (rule 4)", async () => {
    const { ask } = await subject(adapter, ({ url }) => ({ body: url.startsWith("/same") ? "same" : url }));
    const tags = [];
    for (const path of ["/same1", "/same2", "/x", "/y"]) tags.push((await ask(path)).headers.etag);
    expect(tags[0]).toBe(tags[1]);
    expect(new Set(tags).size).toBe(3);
  });

  test("ttl, cacheControlExtra and a strong ETag are what the options say (rules 4 and 5)", async () => {
    const { ask, clock, calls } = await subject(adapter, counting(), {
      ttl: 10,
      cacheControlExtra: "public",
      etag: "strong",
    });
    const first = await ask("/");
    expect(first.headers["cache-control"]).toBe("max-age=10, public");
    expect(first.headers.etag).toMatch(/^"[\w-]{22}"$/);
    await clock.advance(9_000);
    const second = await ask("/");
    expect([second.body, second.headers.age]).toEqual(["answer 1", "9"]);
    await clock.advance(1_000);
    expect((await ask("/")).body).toBe("answer 2");
    expect(calls).toHaveLength(2);
  });

  test("a lifetime of years that the handler states is not suspected of being milliseconds", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const years = { "cache-control": "max-age=63072000" };
    const { ask } = await subject(adapter, ({ call }) => ({ headers: years, body: `answer ${call}` }));
    expect([(await ask("/")).body, (await ask("/")).body]).toEqual(["answer 1", "answer 1"]);
    expect(warn.mock.calls).toEqual([]);
  });

  test("an infinite ttl is kept, and stated as a number that caches accept", async () => {
    const { ask, clock } = await subject(adapter, counting(), { ttl: Number.POSITIVE_INFINITY });
    expect((await ask("/")).headers["cache-control"]).toBe("max-age=2147483648");
    await clock.jump(365 * 86_400_000);
    expect((await ask("/")).body).toBe("answer 1");
  });

  test("ttl may be a function of request and response", async () => {
    const ttl = (_: unknown, response: { header(name: string): string | undefined }) =>
      Number(response.header("x-ttl"));
    const { ask } = await subject(
      adapter,
      ({ url, call }) => ({ headers: { "x-ttl": url.slice(1) }, body: `${call}` }),
      {
        ttl,
      },
    );
    expect((await ask("/7")).headers["cache-control"]).toBe("max-age=7");
    expect((await ask("/0")).headers["cache-control"]).toBeUndefined();
  });

  test("excluded paths are not cached in any spelling (rule 6)", async () => {
    const { ask } = await subject(adapter, counting(), { excludePaths: ["/admin", "/Private/"] });
    for (const path of [
      "/admin",
      "/administrator",
      "/ADMIN/x",
      "/%61dmin",
      "/private/x",
      "//admin",
      "/x/../admin",
    ]) {
      const [first, second] = [await ask(path), await ask(path)];
      expect(second.body, path).not.toBe(first.body);
      expect(second.headers["cache-status"]).toBe("xcache; fwd=bypass; detail=excluded");
    }
    const [first, second] = [await ask("/adm"), await ask("/adm")];
    expect(second.body).toBe(first.body);
  });

  test("methods that are not listed are not cached (rule 7)", async () => {
    const { ask, calls } = await subject(adapter, counting(), { methods: ["get"] });
    await ask("/");
    await ask("/", { method: "HEAD" });
    await ask("/", { method: "OPTIONS" });
    expect(calls.map(({ method }) => method)).toEqual(["GET", "HEAD", "OPTIONS"]);
    expect((await ask("/")).body).toBe("answer 1");
  });

  test.each([201, 404, 410, 302])("status %i is stored only with cacheNonOk (rule 8)", async (status) => {
    const strict = await subject(adapter, counting({}, { status }));
    await strict.ask("/");
    expect((await strict.ask("/")).body).toBe("answer 2");
    const lenient = await subject(adapter, counting({}, { status }), { cacheNonOk: true });
    await lenient.ask("/");
    const second = await lenient.ask("/");
    expect([second.status, second.body]).toEqual([status, "answer 1"]);
  });

  test.each([
    ["authorization", "Bearer a"],
    ["cookie", "a=b"],
  ])("a request with %s neither reads nor writes the cache (rule 9)", async (name, value) => {
    const { ask } = await subject(adapter, counting());
    const credentials = { headers: { [name]: value } };
    expect((await ask("/", credentials)).body).toBe("answer 1");
    expect((await ask("/")).body).toBe("answer 2");
    const third = await ask("/", credentials);
    expect(third.body).toBe("answer 3");
    expect(third.headers["cache-status"]).toBe(`xcache; fwd=bypass; detail=${name}`);
    expect((await ask("/")).body).toBe("answer 2");
  });

  test("with a keyBuilder and shared such requests are cached under the key it builds (rule 9)", async () => {
    const keyBuilder = async (request: unknown): Promise<string> =>
      `page of ${headerOf(request, "authorization")}`;
    const { ask } = await subject(adapter, counting(), { keyBuilder, shared: true });
    const as = (name: string) => ask("/", { headers: { authorization: name } });
    expect([(await as("ann")).body, (await as("bob")).body]).toEqual(["answer 1", "answer 2"]);
    expect([(await as("ann")).body, (await as("bob")).body]).toEqual(["answer 1", "answer 2"]);
  });

  test.each(["a=b", ["a=b", "c=d"]])(
    "a response with Set-Cookie is never stored (rule 9)",
    async (cookies) => {
      const script = counting({ "set-cookie": cookies, "cache-control": "public, max-age=600" });
      const { ask } = await subject(adapter, script, { keyBuilder: () => "one key" });
      const first = await ask("/");
      expect(first.headers["set-cookie"]).toEqual([cookies].flat());
      expect((await ask("/")).body).toBe("answer 2");
    },
  );

  test("tags of the options, of a function and of the response invalidate (rule 10)", async () => {
    const tagged = async (options: object, headers: Record<string, string>, tag: string) => {
      const { ask, cache } = await subject(adapter, counting(headers), options);
      await ask("/");
      await cache.invalidateTags("another");
      expect((await ask("/")).body).toBe("answer 1");
      await cache.invalidateTags(tag);
      expect((await ask("/")).body, tag).toBe("answer 2");
    };
    await tagged({ tags: ["pages"] }, {}, "pages");
    const tags = (_: unknown, response: { status: number; header(name: string): string | undefined }) => [
      `status:${response.status}`,
      `id:${response.header("X-Id")}`,
    ];
    await tagged({ tags }, { "x-id": "7" }, "id:7");
    await tagged({ tags }, { "x-id": "7" }, "status:200");
    await tagged({}, { "surrogate-key": "one two" }, "two");
    await tagged({}, { "cache-tag": "one,two three" }, "two three");
  });

  test.each<[string, () => unknown]>([
    ["throws", () => fail("no key")],
    ["rejects", async () => fail("no key")],
    ["returns a number", () => 7],
    ["returns nothing", async () => undefined],
    ["returns an empty string", () => ""],
  ])("a key builder that %s means: do not cache, count an error", async (_, keyBuilder) => {
    const { ask, engine, errors } = await subject(adapter, counting(), {
      keyBuilder: keyBuilder as () => string,
    });
    await ask("/");
    const second = await ask("/");
    expect(second.body).toBe("answer 2");
    expect(second.headers["cache-status"]).toBe("xcache; fwd=bypass; detail=key");
    expect([errors.length, engine.counts.errors]).toEqual([2, 2]);
  });
});

function fail(message: string): never {
  throw new Error(message);
}
