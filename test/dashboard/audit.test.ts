// What the dashboard lets a visitor do and see: every action leaves a trace with its result, a read-only one changes nothing, and
// hidden values are in no response.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  type DashboardAction,
  type DashboardOptions,
  type DashboardResult,
  dashboard,
} from "../../src/dashboard/index.ts";
import { type CacheConfig, XCache } from "../../src/index.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

let prefixes = 0;
function opened(options: Partial<DashboardOptions> = {}, config: CacheConfig = {}) {
  const cache = new XCache({
    kvUrl: redis.url,
    keyPrefix: `a${++prefixes}`,
    operationTimeout: 20,
    ...config,
  });
  cache.on("error", () => {});
  onTestFinished(() => cache.disconnect());
  const board = dashboard({ cache, authorize: () => true, ...options });
  const call = (name: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Response> =>
    board.fetch(
      new Request(`http://admin.example/api/${name}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    );
  return { cache, call };
}

/** Both kinds of reports, in the order they came. */
function trail(options: Partial<DashboardOptions> = {}) {
  const actions: DashboardAction[] = [];
  const results: DashboardResult[] = [];
  const reporting: Partial<DashboardOptions> = {
    authorize: () => ({ user: "ada" }),
    writes: true,
    onAction: (action) => void actions.push(action),
    onResult: (result) => void results.push(result),
    ...options,
  };
  return { actions, results, reporting };
}

const ACTIONS = [
  ["delete", { key: "a" }, { deleted: 1 }],
  ["invalidate", { tag: "t" }, {}],
] as const;

describe.each(ACTIONS)("%s", (action, body, done) => {
  it("is reported once before it happens and once afterwards, with who, what and the result", async () => {
    const { actions, results, reporting } = trail();
    const { cache, call } = opened(reporting);
    await cache.set("a", 1, { tags: ["t"] });
    expect((await call(action, body)).status).toBe(200);
    expect(await cache.exists("a")).toBe(false);
    const what = { action, ...body, user: "ada", allowed: true };
    expect(actions).toEqual([what]);
    expect(results).toEqual([{ ...what, ok: true, ...done }]);
  });

  it("that the store does not carry out is reported once as well, with the reason", async () => {
    const { actions, results, reporting } = trail();
    // Nobody listens there.
    const { call } = opened(reporting, { kvUrl: "redis://127.0.0.1:1/0", operationTimeout: 0.1 });
    const answer = await call(action, body);
    expect(answer.status).toBe(503);
    const { error } = (await answer.json()) as { error: string };
    const what = { action, ...body, user: "ada", allowed: true };
    expect(actions).toEqual([what]);
    expect(results).toEqual([{ ...what, ok: false, error }]);
  });

  it("that is refused is reported once, and so is one whose report fails", async () => {
    const readOnly = trail({ writes: false });
    expect((await opened(readOnly.reporting).call(action, body)).status).toBe(403);
    const refused = { action, ...body, user: "ada", allowed: false };
    expect(readOnly.actions).toEqual([refused]);
    expect(readOnly.results).toEqual([{ ...refused, ok: false, error: "the dashboard is read-only" }]);
    const unlogged = trail({
      onAction: () => {
        throw new Error("log is full");
      },
    });
    expect((await opened(unlogged.reporting).call(action, body)).status).toBe(500);
    expect(unlogged.results).toEqual([{ ...refused, allowed: true, ok: false, error: "log is full" }]);
  });

  it("is answered even if its result cannot be reported, which is a warning", async () => {
    const { reporting } = trail({ onResult: () => Promise.reject(new Error("log is full")) });
    const { cache, call } = opened(reporting);
    await cache.set("a", 1, { tags: ["t"] });
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    expect((await call(action, body)).status).toBe(200);
    expect((await warned).message).toBe("dashboard(): onResult failed: log is full");
  });

  it("that makes no sense is not reported", async () => {
    const { actions, results, reporting } = trail();
    const { call } = opened(reporting);
    for (const wrong of [{}, { key: "", tag: "" }, { key: 1, tag: 1 }])
      expect((await call(action, wrong)).status).toBe(400);
    expect([actions, results]).toEqual([[], []]);
  });
});

it("onResult must be a function", () => {
  expect(() => opened({ onResult: "x" as never })).toThrow(/onResult must be a function/);
});

const MARKER = "Zq7~hidden";

/** Every part of the dashboard, asked for in every way that could show a value. */
const CALLS: readonly (readonly [name: string, body: object])[] = [
  ["overview", {}],
  ["keys", { exact: "text" }],
  ["keys", { match: "*" }],
  ["keys", { similar: "text" }],
  ["keys", { type: "string" }],
  ["keys", { tag: "t" }],
  ...["text", "object", "map", "bytes", "packed", "damaged"].flatMap((key): [string, object][] => [
    ["entry", { key }],
    ["entry", { key, more: true }],
    ["download", { key }],
  ]),
  ["tags", {}],
  ["tags", { exact: true }],
  ["settings", {}],
  ["doctor", {}],
  ["delete", { key: "text" }],
  ["invalidate", { tag: "t" }],
  ["nothing", {}],
];

/** Headers and body, as they reach the browser; of an endless stream the first line. */
async function bytesOf(answer: Response): Promise<string> {
  return `${JSON.stringify([...answer.headers])}\n${Buffer.from(await answer.arrayBuffer()).toString("latin1")}`;
}

describe.each([
  ["the defaults", {}],
  [
    "a visitor who may not",
    { values: true, writes: true, authorize: () => ({ values: false, writes: false }) },
  ],
])("with %s", (_, options: Partial<DashboardOptions>) => {
  it.each(["msgpack", "json"] as const)(
    "values as %s are in no response, and nothing is changed",
    async (serialization) => {
      const { cache, call } = opened(options, { serialization });
      const config: CacheConfig = { kvUrl: redis.url, keyPrefix: `a${prefixes}`, serialization };
      const packing = new XCache({
        ...config,
        operationTimeout: 20,
        compression: { algorithm: "gzip", thresholdBytes: 1 },
      });
      onTestFinished(() => packing.disconnect());
      await cache.set("text", MARKER, { tags: ["t"] });
      await cache.set("object", { [MARKER]: { [MARKER]: [MARKER] } }, { tags: ["t"] });
      await cache.set("map", new Map([[MARKER, new Set([MARKER])]]));
      await cache.set("bytes", Buffer.from(MARKER.repeat(10)));
      await packing.set("packed", MARKER.repeat(1_000));
      await cache.set("damaged", { name: MARKER });
      const [damaged = ""] = (await redis.cli("KEYS", `a${prefixes}*damaged`)).split("\n");
      // Within the text of the value.
      await redis.cli(
        "EVAL",
        "return redis.call('SETRANGE', KEYS[1], redis.call('STRLEN', KEYS[1]) - 4, '\\255\\255\\255')",
        "1",
        damaged,
      );
      const before = await redis.cli("DBSIZE");
      const contents = await redis.cli("GET", damaged);
      for (const [name, body] of CALLS) {
        const text = await bytesOf(await call(name, body));
        expect([name, body, /Zq7|hidden"?~|~hidden/.test(text)]).toEqual([name, body, false]);
        expect(text).not.toContain(Buffer.from("Zq7~").toString("hex"));
      }
      const live = (await call("live")).body?.getReader();
      const first = Buffer.from((await live?.read())?.value ?? []).toString("latin1");
      await live?.cancel();
      expect(first).toContain("overview");
      expect(first).not.toContain("Zq7");
      expect(await redis.cli("DBSIZE")).toBe(before);
      expect(await redis.cli("GET", damaged)).toBe(contents);
      expect(await cache.get("text")).toBe(MARKER);
    },
  );
});

describe("behind a proxy that replaces Host", () => {
  const origin = "https://admin.example.com";
  it.each<[string, Record<string, string>, number]>([
    ["the browser says that the request is the page's own", { "sec-fetch-site": "same-origin" }, 200],
    [
      "the proxy names the host",
      { "x-forwarded-host": "admin.example.com", "x-forwarded-proto": "https" },
      200,
    ],
    ["the first of several proxies names it", { "x-forwarded-host": "Admin.example.com, inner:8080" }, 200],
    ["nobody names the host", {}, 403],
    ["the proxy names another", { "x-forwarded-host": "evil.example" }, 403],
    ["a later proxy names it", { "x-forwarded-host": "evil.example, admin.example.com" }, 403],
    [
      "the browser says otherwise",
      { "sec-fetch-site": "same-site", "x-forwarded-host": "admin.example.com" },
      403,
    ],
    [
      "the browser says cross-site",
      { "sec-fetch-site": "cross-site", "x-forwarded-host": "admin.example.com" },
      403,
    ],
  ])("%s", async (_, headers, status) => {
    const { call } = opened({}, { kvUrl: "memory://" });
    expect((await call("settings", {}, { host: "127.0.0.1:3000", origin, ...headers })).status).toBe(status);
  });

  it("the names that are served are compared with Host, whatever was forwarded", async () => {
    const { call } = opened({ hosts: ["admin.example.com"] }, { kvUrl: "memory://" });
    const headers = { "x-forwarded-host": "admin.example.com", "sec-fetch-site": "same-origin" };
    expect((await call("settings", {}, { host: "evil.example", ...headers })).status).toBe(421);
    expect((await call("settings", {}, { host: "admin.example.com", ...headers })).status).toBe(200);
  });
});
