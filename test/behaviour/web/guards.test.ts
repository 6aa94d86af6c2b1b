// What belongs to one user, one proxy or one moment is not answered to another: credentials, key builders, forwarded fields,
// personal lifetimes and errors.
import { readFileSync } from "node:fs";
import { createServer as createTlsServer, request as tlsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { makeCertificates } from "../../support/certificate.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ADAPTERS, counting, headerOf, type Script, type Seen, subject } from "./subject.ts";

describe.each(ADAPTERS)("on %s", (adapter) => {
  describe("a key builder", () => {
    const keyBuilder = (request: unknown): string => `kind ${headerOf(request, "x-kind")}`;

    test.each([
      ["authorization", "Bearer a"],
      ["cookie", "a=b"],
    ])("does not let requests with %s in", async (name, value) => {
      const { ask } = await subject(adapter, counting(), { keyBuilder });
      const personal = { headers: { [name]: value } };
      expect((await ask("/", personal)).body).toBe("answer 1");
      expect((await ask("/")).body).toBe("answer 2");
      const third = await ask("/", personal);
      expect([third.body, third.headers["cache-status"]]).toEqual([
        "answer 3",
        `xcache; fwd=bypass; detail=${name}`,
      ]);
    });

    test("lets them in with shared: true", async () => {
      const { ask } = await subject(adapter, counting(), { keyBuilder, shared: true });
      expect((await ask("/", { headers: { cookie: "a=b" } })).body).toBe("answer 1");
      expect((await ask("/", { headers: { authorization: "Bearer a" } })).body).toBe("answer 1");
    });

    test("does not mix hosts", async () => {
      const { ask } = await subject(adapter, counting(), { keyBuilder });
      expect((await ask("/", { headers: { host: "a.test" } })).body).toBe("answer 1");
      expect((await ask("/", { headers: { host: "b.test" } })).body).toBe("answer 2");
      expect((await ask("/", { headers: { host: "a.test" } })).body).toBe("answer 1");
    });

    test("a POST invalidates all entries of its path, whatever query filled them", async () => {
      const { ask } = await subject(adapter, counting(), {
        keyBuilder: (request: unknown) => `kind ${headerOf(request, "x-kind")}`,
      });
      const visit = async (path: string, kind: string) =>
        (await ask(path, { headers: { "x-kind": kind } })).body;
      await visit("/x?page=1", "a");
      await visit("/x?page=2", "b");
      await visit("/other", "c");
      await ask("/x", { method: "POST" });
      expect(await visit("/x?page=1", "a")).toBe("answer 5");
      expect(await visit("/x?page=2", "b")).toBe("answer 6");
      expect(await visit("/other", "c")).toBe("answer 3");
    });
  });

  test("user keeps the pages of each user apart, and those of nobody from everyone", async () => {
    const { ask } = await subject(adapter, counting(), {
      user: async (request: unknown) => headerOf(request, "authorization")?.replace("Bearer ", ""),
    });
    const as = async (name: string | undefined, more = {}) => {
      const authorization = name === undefined ? {} : { authorization: `Bearer ${name}` };
      return ask("/", { headers: { ...authorization, ...more } });
    };
    expect((await as("ann")).body).toBe("answer 1");
    expect((await as("bob")).body).toBe("answer 2");
    expect((await as(undefined)).body).toBe("answer 3");
    const again = await as("ann", { cookie: "seen=1" });
    expect([again.body, again.headers["cache-control"]]).toEqual(["answer 1", "max-age=60, private"]);
    expect((await as("bob")).body).toBe("answer 2");
    const anonymous = await as(undefined);
    expect([anonymous.body, anonymous.headers["cache-control"]]).toEqual(["answer 3", "max-age=60"]);
    // A cookie of somebody whom `user` does not know.
    const unknown = await as(undefined, { cookie: "session=1" });
    expect([unknown.body, unknown.headers["cache-status"]]).toEqual([
      "answer 4",
      "xcache; fwd=bypass; detail=cookie",
    ]);
    await ask("/", { method: "POST" });
    expect((await as("ann")).body).toBe("answer 6");
  });

  test.each([
    "X-Api-Key",
    "X-Auth-Token",
    "Remote-User",
    "X-Remote-User",
    "X-Auth-Request-User",
    "X-Auth-Request-Email",
    "X-Forwarded-User",
    "CF-Access-Jwt-Assertion",
    "Proxy-Authorization",
    "X-Amzn-Oidc-Data",
  ])("a request with %s bypasses the cache", async (name) => {
    const { ask } = await subject(adapter, counting());
    await ask("/");
    const personal = await ask("/", { headers: { [name]: "ann" } });
    expect([personal.body, personal.headers["cache-status"]]).toEqual([
      "answer 2",
      `xcache; fwd=bypass; detail=${name.toLowerCase()}`,
    ]);
    expect((await ask("/")).body).toBe("answer 1");
  });

  test("credentialHeaders replaces the list", async () => {
    const { ask } = await subject(adapter, counting(), { credentialHeaders: ["X-Tenant", "X-Acme-*"] });
    const visit = async (headers: Record<string, string>) => (await ask("/", { headers })).body;
    expect(await visit({})).toBe("answer 1");
    expect(await visit({ "x-api-key": "a" })).toBe("answer 1");
    expect(await visit({ "x-tenant": "a" })).toBe("answer 2");
    expect(await visit({ "x-acme-user": "a" })).toBe("answer 3");
    expect(await visit({ cookie: "a=b" })).toBe("answer 4");
  });

  test("forwarded fields reach the handler and are part of the key, except for addresses", async () => {
    const script = ({ headers }: Seen) => ({
      body: `${headers["x-forwarded-proto"]}://${headers["x-forwarded-host"]} for ${headers["x-forwarded-for"]}`,
    });
    const { ask, calls } = await subject(adapter, script);
    const via = async (proto: string, host: string, client: string) =>
      (
        await ask("/", {
          headers: { "x-forwarded-proto": proto, "x-forwarded-host": host, "x-forwarded-for": client },
        })
      ).body;
    expect(await via("https", "a.test", "192.0.2.1")).toBe("https://a.test for 192.0.2.1");
    expect(await via("http", "a.test", "192.0.2.1")).toBe("http://a.test for 192.0.2.1");
    expect(await via("https", "evil.test", "192.0.2.2")).toBe("https://evil.test for 192.0.2.2");
    expect(await via("https", "a.test", "192.0.2.3")).toBe("https://a.test for 192.0.2.1");
    expect((await ask("/")).body).toBe("undefined://undefined for undefined");
    expect(calls).toHaveLength(4);
    await ask("/", {
      method: "POST",
      headers: { "x-forwarded-proto": "https", "x-forwarded-host": "a.test" },
    });
    await via("https", "a.test", "192.0.2.1");
    await ask("/");
    expect(calls).toHaveLength(7);
  });

  test("an unsafe request invalidates its URL, whatever fields of the key it or the entries have", async () => {
    const { ask, calls } = await subject(adapter, counting());
    const proxy = { "x-forwarded-proto": "https", "x-forwarded-server": "a" };
    const script = { "x-requested-with": "XMLHttpRequest" };
    const kinds = [{}, proxy, script, { ...proxy, ...script }, { ...proxy, "x-forwarded-server": "b" }];
    const visitAll = async () => {
      const before = calls.length;
      for (const headers of kinds) for (const path of ["/", "/?other"]) await ask(path, { headers });
      return calls.length - before;
    };
    expect([await visitAll(), await visitAll()]).toEqual([10, 0]);
    for (const headers of kinds) {
      await ask("/", { method: "POST", headers });
      expect(await visitAll(), JSON.stringify(headers)).toBe(5);
    }
  });

  test("X-Requested-With is part of the key", async () => {
    const { ask } = await subject(adapter, ({ headers }) => ({
      body: headers["x-requested-with"] === undefined ? "page" : "fragment",
    }));
    const script = { headers: { "x-requested-with": "XMLHttpRequest" } };
    expect((await ask("/", script)).body).toBe("fragment");
    expect((await ask("/")).body).toBe("page");
    const hit = await ask("/", script);
    expect([hit.body, hit.headers["cache-status"]]).toEqual(["fragment", "xcache; hit; ttl=60"]);
  });

  test("a response whose Content-Security-Policy has a nonce is not stored", async () => {
    const policy = "script-src 'nonce-abc' 'self'";
    for (const name of ["content-security-policy", "content-security-policy-report-only"]) {
      const { ask } = await subject(adapter, counting({ [name]: policy, "cache-control": "max-age=60" }));
      const first = await ask("/");
      expect(first.headers["cache-status"]).toBe("xcache; fwd=uri-miss; detail=nonce");
      expect((await ask("/")).body).toBe("answer 2");
    }
  });

  test("a browser asks again after a login: Vary: Cookie goes with a lifetime that the cache adds", async () => {
    const { ask, clock, calls } = await subject(adapter, counting({ vary: "accept" }));
    for (const age of ["miss", "hit"]) expect((await ask("/")).headers.vary, age).toBe("accept, Cookie");
    await clock.advance(61_000);
    expect((await ask("/")).headers.vary).toBe("accept, Cookie");
    expect(calls).toHaveLength(2);
    for (const options of [{ varyCookie: false }, { shared: true }, { user: () => "ann" }]) {
      const other = await subject(adapter, counting(), options);
      expect((await other.ask("/")).headers.vary).toBeUndefined();
    }
    const stated = await subject(adapter, counting({ "cache-control": "max-age=600" }));
    expect((await stated.ask("/")).headers.vary).toBeUndefined();
  });

  test("what varyBy names is added to Vary, also after the handler has confirmed the response", async () => {
    const script: Script = ({ headers }) => ({
      status: headers["if-none-match"] === undefined ? 200 : 304,
      headers: { "cache-control": "max-age=600", vary: "Cookie", etag: '"1"' },
      body: "page",
    });
    const { ask, clock } = await subject(adapter, script, { varyBy: ["x-a"] });
    for (const visit of ["first", "second"]) expect((await ask("/")).headers.vary, visit).toBe("Cookie, x-a");
    await clock.advance(601_000);
    for (const visit of ["confirmed", "next"]) {
      expect((await ask("/")).headers.vary, visit).toBe("Cookie, x-a");
    }
  });

  test.each([401, 403, 407, 429, 500, 502, 503])(
    "cacheNonOk stores %i only with a lifetime",
    async (status) => {
      const silent = await subject(adapter, counting({}, { status }), { cacheNonOk: true });
      await silent.ask("/");
      expect((await silent.ask("/")).body).toBe("answer 2");
      const stated = await subject(adapter, counting({ "cache-control": "max-age=5" }, { status }), {
        cacheNonOk: true,
      });
      await stated.ask("/");
      expect((await stated.ask("/")).body).toBe("answer 1");
    },
  );

  test.each<[string, (call: number) => { status?: number; headers?: Record<string, string> }]>([
    ["fails", (call) => (call === 1 ? {} : { status: 500 })],
    ["may not be stored", (call) => (call === 1 ? {} : { headers: { "cache-control": "no-store" } })],
  ])("a refresh that %s is not repeated for every hit", async (_, made) => {
    const { ask, clock, calls } = await subject(
      adapter,
      ({ call }) => ({ ...made(call), body: `answer ${call}` }),
      { ttl: 10, staleWhileRevalidate: 600 },
    );
    await ask("/");
    await clock.advance(11_000);
    for (let time = 0; time < 20; time++) {
      expect((await ask("/")).body).toBe("answer 1");
      await clock.advance(1);
    }
    expect(calls.length).toBeLessThanOrEqual(3);
    await clock.advance(31_000);
    await ask("/");
    await clock.advance(1);
    expect(calls.length).toBeGreaterThanOrEqual(3);
  });
});

test("a request with a client certificate bypasses the cache", async () => {
  const { ca, certFile, keyFile } = await makeCertificates();
  const own = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  let calls = 0;
  const listener = nodeCache({ cache: memoryCache().cache })((_request, response) =>
    response.end(`answer ${++calls}`),
  );
  const server = createTlsServer(
    { ...own, ca, requestCert: true, rejectUnauthorized: false },
    listener as never,
  );
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const visit = (given: object): Promise<string> =>
    new Promise((resolve, reject) => {
      const sent = tlsRequest({ port, host: "127.0.0.1", ca, agent: false, ...given }, (response) => {
        let body = "";
        response.on("data", (data) => {
          body += data;
        });
        response.on("end", () => resolve(body));
      });
      sent.on("error", reject);
      sent.end();
    });
  expect([await visit({}), await visit(own), await visit(own), await visit({})]).toEqual([
    "answer 1",
    "answer 2",
    "answer 3",
    "answer 1",
  ]);
});
