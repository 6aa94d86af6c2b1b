// The dashboard's server: who may ask and from where, what is refused, every adapter, hostile keys and values, the size.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, request } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import express from "express";
import Fastify from "fastify";
import helmet from "helmet";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { COMMANDS, GLOBAL_OPTIONS } from "../../src/cli/specs/table.ts";
import { loadPage } from "../../src/dashboard/handler.ts";
import { type DashboardAction, type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { serveLocally } from "../../src/dashboard/local.ts";
import { AlertManager, ConfigError, MemoryBackend, XCache } from "../../src/index.ts";

function opened(options: Partial<DashboardOptions> = {}) {
  const { cache = new XCache({ kvUrl: "memory://", keyPrefix: "shop" }) } = options;
  onTestFinished(() => cache.disconnect());
  const board = dashboard({ authorize: () => true, ...options, cache });
  const call = (name: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Response> =>
    board.fetch(
      new Request(`http://admin.example/cache/api/${name}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    );
  return { cache, board, call };
}

const linesOf = async (response: Response): Promise<Record<string, unknown>[]> =>
  (await response.text())
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("the page", () => {
  it("stays within 120 kB, and 45 kB compressed", async () => {
    const { html } = await loadPage();
    expect(Buffer.byteLength(html)).toBeLessThan(120_000);
    expect(gzipSync(html).length).toBeLessThan(45_000);
  });

  it("may run nothing but its own script, and has relative addresses only", async () => {
    const { board } = opened();
    const answer = await board.fetch(new Request("http://admin.example/deep/path/"));
    expect(answer.status).toBe(200);
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/);
    expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
    expect(policy).not.toContain("unsafe");
    expect(answer.headers.get("x-frame-options")).toBe("DENY");
    expect(await answer.text()).not.toMatch(/(?:src|href)="(?!data:|#)/);
    const bare = await board.fetch(new Request("http://admin.example/deep/path?x=1"));
    expect([bare.status, bare.headers.get("location")]).toEqual([308, "./path/?x=1"]);
  });
});

describe("who may look", () => {
  const anyone = (): boolean => true;
  it.each<[object, RegExp]>([
    [{}, /authorize must be a function/],
    [{ authorize: true }, /authorize must be a function, got/],
    [{ authorize: anyone, cache: {} }, /cache must be an XCache/],
    [{ authorize: anyone, hosts: "x" }, /hosts must be a list/],
    [{ authorize: anyone, value: true }, /unknown option "value"/],
    [{ authorize: anyone, redact: "x" }, /redact must be a function/],
    [{ authorize: anyone, alerts: {} }, /alerts must be an AlertManager/],
  ])("options %j are refused", (options, message) => {
    const cache = new XCache({ kvUrl: "memory://" });
    onTestFinished(() => cache.disconnect());
    const make = (): unknown => dashboard({ cache, ...options } as never);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it.each([false, undefined, 1, "yes", null])(
    "an answer of %j from authorize is a refusal",
    async (answer) => {
      const { board, call } = opened({ authorize: () => answer as never });
      expect((await call("overview")).status).toBe(401);
      expect((await board.fetch(new Request("http://admin.example/"))).status).toBe(401);
    },
  );

  it("an error of authorize refuses, and is a warning but not shown", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    onTestFinished(() => warning.mockRestore());
    const error = new Error("secret reason");
    const { call } = opened({
      authorize: () => {
        throw error;
      },
    });
    for (let time = 0; time < 2; time++) {
      const answer = await call("overview");
      expect(answer.status).toBe(500);
      expect(await answer.text()).not.toContain("secret");
    }
    const options = { type: "XCacheWarning", detail: error.stack };
    expect(warning.mock.calls).toEqual([["dashboard() failed: secret reason", options]]);
  });

  it("a body whose sender leaves is no failure of the dashboard", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    onTestFinished(() => warning.mockRestore());
    const { board } = opened();
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("aborted")) });
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body, duplex: "half" };
    const answer = await board.fetch(new Request("http://admin.example/api/overview", init as RequestInit));
    expect(answer.status).toBe(400);
    expect(warning).not.toHaveBeenCalled();
  });

  it("other hosts, other origins, other methods and other types are refused", async () => {
    const { call } = opened({ hosts: ["admin.example"] });
    expect((await call("overview", {}, { host: "evil.example" })).status).toBe(421);
    expect((await call("overview", {}, { host: "ADMIN.example" })).status).toBe(200);
    const host = "admin.example";
    expect((await call("overview", {}, { host, origin: "https://evil.example" })).status).toBe(403);
    expect((await call("overview", {}, { host, origin: "null" })).status).toBe(403);
    expect((await call("overview", {}, { host, origin: "http://admin.example" })).status).toBe(200);
    expect((await call("overview", {}, { host, "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await call("overview", {}, { host, "content-type": "text/plain" })).status).toBe(415);
    expect((await call("nothing")).status).toBe(404);
  });

  it.each([
    ["GET", "api/overview", "POST"],
    ["TRACE", "api/overview", "POST"],
    ["TRACE", "", "GET, HEAD"],
    ["DELETE", "", "GET, HEAD"],
  ])("%s of /%s gets 405 and the methods there are", async (method, path, allow) => {
    const { board } = opened();
    const server = createServer(board.node);
    onTestFinished(() => void server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const asked = request({ host: "127.0.0.1", port, method, path: `/${path}`, agent: false });
    asked.end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    expect([answer.statusCode, answer.headers.allow]).toEqual([405, allow]);
  });

  it("a local dashboard needs its token, on its own address", async () => {
    const cache = new XCache({ kvUrl: "memory://" });
    onTestFinished(() => cache.disconnect());
    const local = await serveLocally({ cache, port: 0, values: false, writes: false, onRequest: () => {} });
    onTestFinished(() => local.close());
    const { origin, hash, hostname } = new URL(local.url);
    expect(hostname).toBe("127.0.0.1");
    const token = hash.slice("#token=".length);
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (
        await fetch(`${origin}/api/settings`, {
          method: "POST",
          body: "{}",
          headers: { "content-type": "application/json", ...headers },
        })
      ).status;
    expect(await ask({ authorization: `Bearer ${token}` })).toBe(200);
    expect(await ask({ authorization: `Bearer ${token.slice(1)}x` })).toBe(401);
    expect(await ask({ authorization: token })).toBe(401);
    expect(await ask({})).toBe(401);
    expect(await ask({ authorization: `Bearer ${token}`, origin: "http://localhost:1" })).toBe(403);
    expect((await fetch(`${origin}/`)).status).toBe(200);
  });
});

describe("what is shown and changed", () => {
  it("values are hidden and nothing can be changed unless that is allowed, and refusals are reported too", async () => {
    const actions: DashboardAction[] = [];
    const { cache, call } = opened({ onAction: (action) => void actions.push(action) });
    await cache.set("a", { secret: 1 }, { tags: ["t"] });
    expect(await (await call("entry", { key: "a" })).json()).not.toHaveProperty("value");
    expect((await call("download", { key: "a" })).status).toBe(403);
    expect((await call("delete", { key: "a" })).status).toBe(403);
    expect((await call("invalidate", { tag: "t" })).status).toBe(403);
    expect(await cache.exists("a")).toBe(true);
    expect(actions).toEqual([
      { action: "delete", key: "a", allowed: false },
      { action: "invalidate", tag: "t", allowed: false },
    ]);
  });

  it("with permission they can; a visitor may have less, and what fails to be reported is not done", async () => {
    const actions: DashboardAction[] = [];
    let permission: object = { user: "ada" };
    const { cache, call } = opened({
      values: true,
      writes: true,
      authorize: () => permission,
      onAction: (action) => {
        if (action.key === "unlogged") throw new Error("log is full");
        actions.push(action);
      },
    });
    await cache.setMany({ a: 1, b: 2, unlogged: 3 }, { tags: ["t"] });
    expect(await (await call("delete", { key: "a" })).json()).toEqual({ deleted: 1 });
    expect((await call("delete", { key: "unlogged" })).status).toBe(500);
    expect(await cache.exists("unlogged")).toBe(true);
    expect((await call("invalidate", { tag: "t" })).status).toBe(200);
    expect(await cache.exists("b")).toBe(false);
    expect(actions).toEqual([
      { action: "delete", key: "a", user: "ada", allowed: true },
      { action: "invalidate", tag: "t", user: "ada", allowed: true },
    ]);
    permission = { writes: false, values: false };
    expect((await call("delete", { key: "b" })).status).toBe(403);
    expect((await call("download", { key: "b" })).status).toBe(403);
  });

  it("secrets in values are hidden on the server, whatever they are in", async () => {
    const { cache, call } = opened({ values: true, redact: (path) => path.at(-1) === "email" });
    const value = {
      name: "Ada",
      email: "ada@example.com",
      apiKey: "k-123",
      list: [{ password: "p-123" }],
      map: new Map([["token", "t-123"]]),
      byFilter: new Map([[{ toString: 1, secret: "s-123" }, 1]]),
      error: new Error("failed", { cause: { headers: { authorization: "a-123" } } }),
    };
    await cache.set("a", value);
    const shown = await (await call("entry", { key: "a" })).text();
    const whole = await (await call("download", { key: "a" })).text();
    for (const text of [shown, whole]) {
      expect(text).toContain("Ada");
      expect(text).toContain("Error: failed");
      expect(text).not.toMatch(/-123|example\.com/);
    }
  });

  it("large values are cut, bytes are dumped, and the whole can be downloaded", async () => {
    const { cache, call } = opened({ values: true });
    await cache.set("text", "x".repeat(5_000_000));
    await cache.set("bytes", new Uint8Array(100_000).fill(65));
    const text = (await (await call("entry", { key: "text" })).json()) as {
      value: { text: string; cut: boolean };
    };
    expect([text.value.text.length, text.value.cut]).toEqual([64 * 1024, true]);
    const bytes = (await (await call("entry", { key: "bytes" })).json()) as { value: { text: string } };
    expect(bytes.value.text).toMatch(/^000000 {2}41 41 .*AAAAAAAAAAAAAAAA/);
    expect((await (await call("download", { key: "bytes" })).arrayBuffer()).byteLength).toBe(100_000);
  });

  it("keys come as they are found, with the exact one and how many were looked at", async () => {
    const { cache, call } = opened();
    await cache.setMany(Array.from({ length: 2_500 }, (_, at) => [`k:${at}`, at] as const));
    await cache.set("<script>\u202e\u0000\ud800", 1, { tags: ["t"] });
    const lines = await linesOf(await call("keys", { prefix: "k:", exact: "k:7" }));
    expect(lines[0]).toMatchObject({ exact: { key: "k:7", type: "number" } });
    expect(lines.at(-1)).toMatchObject({ done: false, cursor: expect.stringMatching(/^memory:/) });
    const [tagged] = (await linesOf(await call("keys", { tag: "t" }))).flatMap(
      ({ entries }) => (entries ?? []) as { key: string }[],
    );
    expect(tagged?.key).toBe("<script>\u202e\u0000\ud800");
  });

  it("keys that resemble a text are found, best first, within the other filters", async () => {
    const { cache, call } = opened();
    await cache.setMany({ "user:ada": 1, "user:adam": 2, "order:1": 3 }, { tags: ["people"] });
    await cache.set("user:adan", 4);
    const found = async (body: object): Promise<string[]> =>
      (await linesOf(await call("keys", body))).flatMap(({ entries }) =>
        ((entries ?? []) as { key: string }[]).map(({ key }) => key),
      );
    expect(await found({ similar: "usr:adam" })).toEqual(["user:adam", "user:ada", "user:adan"]);
    expect(await found({ similar: "usr:adan", tag: "people" })).toEqual(["user:ada", "user:adam"]);
    expect(await found({ similar: "nothing like it" })).toEqual([]);
    const [refused] = await linesOf(await call("keys", { similar: "x".repeat(300) }));
    expect(refused?.failed).toContain("at most 256 characters");
  });

  it.each([
    ["keys", { state: "old" }],
    ["keys", { prefix: 7 }],
    ["keys", { limit: 0 }],
    ["entry", { key: "" }],
    ["entry", {}],
    ["entry", { key: "x".repeat(65_537) }],
    ["overview", { range: 5 }],
    ["invalidate", { tag: "" }],
    ["invalidate", { tag: [] }],
  ])("%s refuses %j with a reason", async (name, body) => {
    const { call } = opened({ writes: true });
    const answer = await call(name, body);
    const text = await answer.text();
    expect(text).toMatch(/must be|failed/);
    expect([200, 400]).toContain(answer.status);
    if (answer.status === 200) expect(text).toContain('"failed"');
  });

  it("looking counts nothing, and a scan ends with its reader", async () => {
    const { cache, call } = opened({ values: true });
    await cache.setMany(Array.from({ length: 5_000 }, (_, at) => [`k:${at}`, at] as const));
    const before = cache.getComprehensiveMetrics().totalOperations;
    for (const name of ["overview", "tags", "settings", "doctor"])
      expect((await call(name)).status).toBe(200);
    await call("entry", { key: "k:1" });
    const first = await call("keys", { match: "none*" });
    const reader = first.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    // The next one has its turn at once.
    expect((await linesOf(await call("keys", { prefix: "k:1" }))).at(-1)).toHaveProperty("done");
    expect(cache.getComprehensiveMetrics().totalOperations).toBe(before);
  });

  it("settings of a cache on a backend of the application's own are shown, whatever that refers to", async () => {
    const backend = Object.assign(new MemoryBackend(), { client: { self: {}, id: 1n } });
    backend.client.self = backend;
    const { call } = opened({ cache: new XCache({ backend, defaultTtl: Number.POSITIVE_INFINITY }) });
    const answer = await call("settings");
    expect(answer.status).toBe(200);
    const { settings } = (await answer.json()) as { settings: readonly object[] };
    expect(settings).toContainEqual({ name: "backend", value: "MemoryBackend", origin: "code" });
    expect(settings).toContainEqual({ name: "default_ttl", value: "Infinity", origin: "code" });
    expect(settings).toContainEqual({ name: "key_prefix", value: "xcache", origin: "default" });
    expect(await (await call("overview")).json()).toMatchObject({ address: "MemoryBackend" });
  });

  it("settings show what became of the messages of alerts", async () => {
    const cache = new XCache({ kvUrl: "memory://" });
    const { call } = opened({ cache, alerts: new AlertManager(cache) });
    const { settings } = (await (await call("settings")).json()) as { settings: readonly object[] };
    expect(settings).toContainEqual({
      name: "alert deliveries",
      value: "0 delivered, 0 failed attempts, 0 abandoned, 0 superseded, 0 pending",
      origin: "since start",
    });
  });

  it("settings show no secret", async () => {
    const cache = new XCache({
      kvUrl: "redis://user:s3cret@127.0.0.1:1/0",
      encryption: { keys: { a: "0123456789abcdef0123456789abcdef" }, use: "a" },
    });
    onTestFinished(() => cache.disconnect());
    const board = dashboard({ cache, authorize: () => true });
    const request = new Request("http://x/api/settings", {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    const text = await (await board.fetch(request)).text();
    expect(text).toContain("kv_url");
    expect(text).not.toMatch(/s3cret|0123456789/);
  });
});

it("the commands that the page copies exist, with their flags", () => {
  const folder = join(import.meta.dirname, "../../dashboard");
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  const copied = texts.flatMap((text) => [...text.matchAll(/`xcache ([a-z]+) ([^`]*)`/g)]);
  expect(copied.map(([, name]) => name).toSorted()).toEqual(["get", "invalidate"]);
  for (const [, name, rest = ""] of copied) {
    const options = [...GLOBAL_OPTIONS, ...(COMMANDS.find((each) => each.name === name)?.options ?? [])];
    const known = options.flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? []);
    for (const flag of rest.match(/--[a-z-]+/g) ?? []) expect(known).toContain(flag);
  }
});

describe("adapters", () => {
  type Mounted = { readonly listener: RequestListener; ready?(): PromiseLike<unknown> };
  type Board = ReturnType<typeof dashboard>;
  const MOUNTS: Readonly<Record<string, (board: Board) => Mounted>> = {
    node: (board) => ({ listener: board.node }),
    express: (board) => {
      const app = express();
      app.use(helmet());
      app.use(express.json());
      app.use("/admin/cache", board.express);
      return { listener: app };
    },
    koa: (board) => {
      const app = new Koa();
      app.use((context) => board.koa(context));
      return { listener: app.callback() };
    },
    fastify: (board) => {
      const app = Fastify();
      void app.register(board.fastify as never, { prefix: "/admin/cache" });
      return { listener: (request, response) => app.routing(request, response), ready: () => app.ready() };
    },
  };

  it.each(Object.entries(MOUNTS))("%s serves the page and its data below a path", async (_, mount) => {
    const { cache, board } = opened();
    await cache.set("a", 1);
    const { listener, ready } = mount(board);
    await ready?.();
    const server = createServer(listener).listen(0, "127.0.0.1");
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    await once(server, "listening");
    const base = `http://127.0.0.1:${(server.address() as { port: number }).port}/admin/cache/`;
    const page = await fetch(base);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none'/);
    expect(await page.text()).toContain("<title>xcache</title>");
    const headers = { "content-type": "application/json" };
    const data = await fetch(`${base}api/overview`, { method: "POST", body: "{}", headers });
    expect(await data.json()).toMatchObject({
      prefix: "shop",
      backend: "memory",
      allowed: { writes: false },
    });
    const entry = await fetch(`${base}api/entry`, { method: "POST", body: '{"key":"a"}', headers });
    expect(await entry.json()).toMatchObject({ key: "a", state: "fresh" });
    const keys = await fetch(`${base}api/keys`, { method: "POST", body: "{}", headers });
    expect((await linesOf(keys)).at(-1)).toEqual({ done: true, scanned: 1 });
  });

  it("hono serves them too, and authorize gets the context", async () => {
    const seen: unknown[] = [];
    const { board } = opened({
      authorize: (_request, { native, isPage }) => {
        seen.push(isPage, typeof (native as { req: object }).req);
        return true;
      },
    });
    const app = new Hono();
    app.all("/cache/*", board.hono);
    const page = await app.request("/cache/");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    const data = await app.request("/cache/api/settings", {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    expect(data.status).toBe(200);
    expect(seen).toEqual([true, "object", false, "object"]);
  });
});
