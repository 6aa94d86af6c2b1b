// Published vulnerabilities of JavaScript HTTP caches by identifier: none of them applies here.
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { soon } from "../../support/pace.ts";
import { ADAPTERS, type Answer, counting, subject } from "./subject.ts";

describe.each(ADAPTERS)("on %s", (adapter) => {
  const isStored = async (headers: Answer["headers"], options = {}): Promise<boolean> => {
    const { ask } = await subject(adapter, counting(headers), options);
    await ask("/");
    return (await ask("/")).body === "answer 1";
  };

  test.each(["private", "no-store", "no-cache", "private, max-age=600", "max-age=600, no-store"])(
    "CVE-2026-24472: Cache-Control: %s is obeyed",
    async (value) => expect(await isStored({ "cache-control": value })).toBe(false),
  );

  test.each([
    "PRIVATE ,",
    'private=""',
    "private=",
    'private="x',
    "max-age=600,private=x y",
    " , ,No-Store",
    "no-store=1",
    'max-age=600, ext="no-store',
    "max-age=600\\t,\\tprivate".replaceAll("\\t", "\t"),
  ])("CVE-2026-13697, CVE-2026-9678: a malformed %j is not stored", async (value) => {
    expect(await isStored({ "cache-control": value })).toBe(false);
  });

  test("several Cache-Control lines count together", async () => {
    expect(await isStored({ "cache-control": ["max-age=600", "Private"] })).toBe(false);
    expect(await isStored({ "Cache-CONTROL": ["public", "max-age=600"] })).toBe(true);
  });

  test("CVE-2026-44457: Vary on Authorization or Cookie keeps principals apart", async () => {
    for (const name of ["Authorization", "Cookie"]) {
      const { ask } = await subject(
        adapter,
        ({ headers }) => ({ headers: { vary: name }, body: `page of ${headers[name.toLowerCase()]}` }),
        { keyBuilder: () => "the same for everybody", shared: true },
      );
      for (const who of ["ann", "bob", "ann"]) {
        expect((await ask("/", { headers: { [name]: who } })).body).toBe(`page of ${who}`);
      }
      expect((await ask("/")).body).toBe("page of undefined");
    }
  });

  test("GHSA-q7jf-gf43-6x6p: a Vary that the client sends is not reflected", async () => {
    const { ask } = await subject(adapter, counting());
    const first = await ask("/", { headers: { vary: "*" } });
    expect(first.headers.vary).toBe("Cookie");
    expect((await ask("/")).body).toBe("answer 1");
    expect((await ask("/")).headers.vary).toBe("Cookie");
  });

  test("CVE-2025-49826: an empty 204 does not replace a page", async () => {
    const { ask, clock } = await subject(adapter, ({ call }) =>
      call === 2 ? { status: 204 } : { body: `page ${call}` },
    );
    await ask("/");
    await clock.advance(61_000);
    expect((await ask("/")).status).toBe(204);
    expect((await ask("/")).body).toBe("page 3");
  });

  test("CVE-2024-46982, CVE-2025-57752, CVE-2026-44576: variants are not confused", async () => {
    const { ask } = await subject(adapter, ({ headers }) => ({
      headers: { vary: "RSC, Next-Router-State-Tree", "cache-control": "max-age=600" },
      body: `rsc=${headers.rsc} tree=${headers["next-router-state-tree"]}`,
    }));
    const bodies = new Set<string>();
    for (const headers of [
      {},
      { rsc: "1" },
      { rsc: "" },
      { rsc: "1", "next-router-state-tree": "a" },
    ] as const) {
      const sent = headers as Record<string, string>;
      const first = await ask("/", { headers: sent });
      const second = await ask("/", { headers: sent });
      expect(second.body).toBe(first.body);
      expect(second.headers["cache-status"]).toContain("hit");
      bodies.add(first.body);
    }
    expect(bodies.size).toBe(4);
  });

  test("CVE-2022-25881: no header takes long to parse", async () => {
    const blown = `max-age=600,${" ".repeat(6_000)}a${"\t ".repeat(900)}`;
    const started = performance.now();
    const { ask } = await subject(
      adapter,
      counting({ "cache-control": blown, vary: `${", ".repeat(2_000)}a` }),
    );
    await ask("/", { headers: { "cache-control": blown, "if-none-match": `${'W/"'.repeat(900)}` } });
    expect((await ask("/")).body).toBe("answer 1");
    expect(performance.now() - started).toBeLessThan(soon(2_000));
  });

  test("CVE-2025-27415: a query that changes the representation is another entry", async () => {
    const { ask } = await subject(adapter, ({ url }) => ({ body: url }));
    for (const path of ["/page", "/page?_payload.json", "/page/_payload.json", "/page"]) {
      expect((await ask(path)).body).toBe(path);
    }
  });

  test("a cookie is not replayed, not even to requests waiting for the same response", async () => {
    const { ask, calls } = await subject(adapter, async ({ call }) => {
      await new Promise((resume) => setImmediate(resume));
      return { headers: { "set-cookie": `session=${call}` }, body: `answer ${call}` };
    });
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask("/")));
    expect(calls).toHaveLength(4);
    expect(new Set(answers.map(({ headers }) => headers["set-cookie"]?.[0])).size).toBe(4);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(4);
  });

  test.each([
    "Forwarded",
    "X-Host",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-HTTP-Method-Override",
    "X-Method-Override",
  ])("%s poisons nothing: a handler that fills the cache does not see it", async (name) => {
    const lower = name.toLowerCase();
    const script = ({ headers }: { headers: Record<string, string | undefined> }) => ({
      body: `at ${headers[lower]}`,
    });
    const plain = await subject(adapter, script);
    expect((await plain.ask("/", { headers: { [name]: "evil" } })).body).toBe("at undefined");
    expect((await plain.ask("/")).body).toBe("at undefined");
    const keyed = await subject(adapter, script, { varyBy: [name] });
    const answer = await keyed.ask("/", { headers: { [name]: "a" } });
    expect([answer.body, answer.headers.vary?.toLowerCase()]).toEqual(["at a", `${lower}, cookie`]);
    expect((await keyed.ask("/", { headers: { [name]: "b" } })).body).toBe("at b");
    expect((await keyed.ask("/")).body).toBe("at undefined");
  });

  test("strict shows the handler keyed fields only", async () => {
    const script = ({ headers }: { headers: object }) => ({ body: Object.keys(headers).join() });
    const { ask } = await subject(adapter, script, { strict: true, varyBy: ["accept-language"] });
    const { body } = await ask("/", {
      headers: { "accept-language": "de", accept: "a/b", "x-anything": "1" },
    });
    expect(body.split(",").filter((name) => name !== "connection" && name !== "host")).toEqual([
      "accept-language",
    ]);
  });

  test("an ETag of another URL is not answered with 304", async () => {
    const { ask } = await subject(adapter, ({ url }) => ({ body: url }));
    const { etag } = (await ask("/a")).headers;
    await ask("/b");
    expect((await ask("/b", { headers: { "if-none-match": etag! } })).status).toBe(200);
    expect((await ask("/c", { headers: { "if-none-match": etag! } })).status).toBe(200);
  });

  test("a HEAD is not stored over a GET, and is answered from one", async () => {
    const { ask, calls } = await subject(adapter, ({ method, call }) => ({
      headers: { "x-call": `${call}` },
      body: method === "HEAD" ? "" : "the page",
    }));
    await ask("/", { method: "HEAD" });
    expect((await ask("/")).body).toBe("the page");
    const head = await ask("/", { method: "HEAD" });
    expect([head.body, head.headers["content-length"], head.headers["x-call"]]).toEqual(["", "8", "2"]);
    expect(calls).toHaveLength(2);
  });

  test("a 500 is not cached, even if its handler marks it cacheable", async () => {
    const { ask } = await subject(adapter, ({ call }) =>
      call === 1 ? { status: 500, headers: { "cache-control": "max-age=600" } } : { body: "well" },
    );
    expect((await ask("/")).status).toBe(500);
    expect((await ask("/")).body).toBe("well");
  });

  test("Content-Encoding and binary bytes come back as they were", async () => {
    const packed = gzipSync("some text ".repeat(100));
    const every = Uint8Array.from({ length: 4_096 }, (_, at) => at % 256);
    const { ask } = await subject(adapter, ({ url }) =>
      url === "/gz" ? { headers: { "content-encoding": "gzip" }, body: packed } : { body: every },
    );
    for (const [path, bytes] of [
      ["/gz", packed],
      ["/every", every],
    ] as const) {
      const [first, second] = [await ask(path), await ask(path)];
      expect(Buffer.compare(first.bytes, bytes)).toBe(0);
      expect(Buffer.compare(second.bytes, bytes)).toBe(0);
      expect(second.headers["content-encoding"]).toBe(first.headers["content-encoding"]);
      expect(second.headers["cache-status"]).toContain("hit");
    }
  });

  test("paths that look alike are never one entry", async () => {
    const { ask } = await subject(adapter, ({ url }) => ({ body: url }));
    const paths = [
      "/me",
      "/me/",
      "/me.",
      "/me%2F",
      "/me/x.css",
      "/me;x.css",
      "/me%00.css",
      "/me%23.css",
      "/ME",
      "//me",
    ];
    for (const path of [...paths, ...paths]) expect((await ask(path)).body).toBe(path);
  });

  test("per-response and hop-by-hop fields are not replayed", async () => {
    const headers = {
      "x-request-id": "1",
      "server-timing": "db;dur=1",
      "keep-alive": "timeout=99",
      "x-listed": "1",
      connection: "keep-alive, x-listed",
      age: "5",
      "x-kept": "1",
    };
    const { ask } = await subject(adapter, counting(headers));
    await ask("/");
    const second = await ask("/");
    expect(second.headers["cache-status"]).toContain("hit");
    for (const name of ["x-request-id", "server-timing", "x-listed"])
      expect(second.headers[name]).toBeUndefined();
    expect(second.headers["keep-alive"]).not.toBe("timeout=99");
    expect([second.headers.age, second.headers["x-kept"]]).toEqual(["5", "1"]);
  });

  test("content sent with a GET, which is not in the key, affects no other request", async () => {
    const { ask, calls } = await subject(adapter, counting());
    for (const headers of [{ "content-length": "4" }, { "transfer-encoding": "chunked" }]) {
      const fat = await ask("/", { headers: headers as Record<string, string>, body: "evil" });
      expect(fat.headers["cache-status"]).toBe("xcache; fwd=bypass; detail=content");
    }
    expect((await ask("/")).body).toBe("answer 3");
    const before = calls.length;
    expect((await ask("/", { headers: { "content-length": "0" } })).headers["cache-status"]).toContain("hit");
    expect(calls).toHaveLength(before);
  });

  test("a method override cannot make a GET invalidate or store anything else", async () => {
    const { ask } = await subject(adapter, ({ method, headers, call }) => ({
      body: `${headers["x-http-method-override"] ?? method} ${call}`,
    }));
    expect((await ask("/", { headers: { "x-http-method-override": "DELETE" } })).body).toBe("GET 1");
    expect((await ask("/")).body).toBe("GET 1");
  });
});
