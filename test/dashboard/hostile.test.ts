// The dashboard under hostile input: addresses that lead elsewhere, values that are huge or deep, damaged and foreign records,
// readers that leave, and samples of stores that list in order.
import { once } from "node:events";
import { type ClientRequest, createServer, type IncomingMessage, request as send } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { requireDashboardOptions } from "../../src/dashboard/checked-options.ts";
import { DashboardData } from "../../src/dashboard/data.ts";
import { type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { type EntryPage, type EntryScanOptions, XCache } from "../../src/index.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

function opened(options: Partial<DashboardOptions> = {}, kvUrl = "memory://") {
  const cache = new XCache({ kvUrl, keyPrefix: "shop", operationTimeout: 10 });
  onTestFinished(() => cache.disconnect());
  const board = dashboard({ cache, authorize: () => true, ...options });
  const call = (name: string, body: unknown = {}): Promise<Response> =>
    board.fetch(
      new Request(`http://admin.example/cache/api/${name}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
  return { cache, board, call };
}

interface KeyLine {
  readonly entries?: readonly { readonly key: string; readonly type?: string }[];
  readonly failed?: string;
}

const linesOf = async (response: Response): Promise<KeyLine[]> =>
  (await response.text())
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as KeyLine);

it.each(["https:evil.example", "http:evil.example", "javascript:alert(1)", "data:text,x", "//evil.example"])(
  "the redirect of /%s stays on this host",
  async (path) => {
    const { board } = opened();
    for (const scheme of ["http", "https"]) {
      const url = `${scheme}://admin.example/${path}`;
      const answer = await board.fetch(new Request(url));
      expect(answer.status).toBe(308);
      const target = new URL(answer.headers.get("location") as string, url);
      expect(target.origin).toBe(`${scheme}://admin.example`);
      expect(target.pathname).toMatch(/\/$/);
    }
  },
);

it("a download is whole, and secrets in it are hidden however deep they are", async () => {
  const { cache, call } = opened({ values: true });
  let deep: unknown = { password: "p-123" };
  for (let depth = 0; depth < 40; depth++) deep = { deep };
  await cache.set("k", { deep, list: Array.from({ length: 5_000 }, (_, at) => `item ${at}`) });
  const text = await (await call("download", { key: "k" })).text();
  expect(text).toContain("item 4999");
  expect(text).toContain("[redacted]");
  expect(text).not.toContain("p-123");
});

it("a value of many small parts is looked at no further than it is shown", async () => {
  let looked = 0;
  const { cache, call } = opened({
    values: true,
    redact: () => {
      looked++;
      return false;
    },
  });
  await cache.set("wide", new Array(900).fill(new Array(900).fill("text of some length")));
  const { value } = (await (await call("entry", { key: "wide" })).json()) as {
    value: { text: string; cut: boolean };
  };
  expect(value.cut).toBe(true);
  expect(value.text.length).toBeLessThanOrEqual(64 * 1024);
  expect(looked).toBeLessThan(30_000);
});

it("errors that are not the library's own are not shown", async () => {
  const { cache, call } = opened();
  const broken = (): never => {
    throw new Error("secret detail");
  };
  Object.assign(cache, { scan: broken, healthCheck: broken });
  for (const name of ["keys", "overview", "live"]) {
    const answer = await call(name);
    const reader = answer.body?.getReader();
    const first = Buffer.from((await reader?.read())?.value ?? []).toString();
    await reader?.cancel();
    expect(first).toContain("the dashboard failed");
    expect(first).not.toContain("secret");
  }
});

it("an action names one tag", async () => {
  const { call } = opened({ writes: true });
  const answer = await call("invalidate", { tag: ["a", "b"] });
  expect([answer.status, await answer.json()]).toEqual([400, { error: "tag must be a string" }]);
});

it("over HTTP/2 the host is checked too", async () => {
  const server = createHttp2Server().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { board } = opened({ hosts: [`127.0.0.1:${port}`] });
  server.on("request", board.node as never);
  const client = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const statusFor = async (authority: string): Promise<unknown> => {
    const stream = client.request({ ":path": "/", ":authority": authority });
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    stream.resume();
    return headers[":status"];
  };
  expect(await statusFor(`127.0.0.1:${port}`)).toBe(200);
  expect(await statusFor("localhost")).toBe(421);
  expect(await statusFor("evil.example")).toBe(421);
});

/** What another client may do: damage a value, and write what is no entry, under keys that are no text. */
const FOREIGN_WRITES = `
  local key = redis.call('KEYS', 'shop*damaged')[1]
  redis.call('SETRANGE', key, redis.call('STRLEN', key) - 4, '\\255\\255')
  local prefix = string.sub(key, 1, #key - #'damaged')
  redis.call('SET', prefix .. 'junk', 'written by somebody else')
  redis.call('LPUSH', prefix .. 'list', 'x')
  redis.call('SET', prefix .. '\\255\\254\\128', 'x')
  return key`;

it("damaged entries, foreign records and keys that are no UTF-8 leave the list of the others alone", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const { cache, call } = opened({ values: true }, server.url);
  await cache.set("good", "text");
  await cache.set("damaged", { name: "Ada" });
  expect(await server.cli("EVAL", FOREIGN_WRITES, "0")).toContain("damaged");
  const lines = await linesOf(await call("keys", { exact: "damaged" }));
  expect(lines.filter(({ failed }) => failed !== undefined)).toEqual([]);
  const rows = lines.flatMap(({ entries = [] }) => entries);
  expect(rows.find(({ key }) => key === "good")).toMatchObject({ type: "string" });
  expect(rows.find(({ key }) => key === "damaged")).not.toHaveProperty("type");
  const overview = (await (await call("overview")).json()) as object;
  expect(overview).toHaveProperty("points");
  expect((await call("entry", { key: "damaged" })).status).toBe(400);
});

it("a sample of a store that lists entries in order says so, and its margin holds", async () => {
  const { cache, call } = opened();
  const entries = (prefix: string) =>
    Array.from({ length: 3_000 }, (_, at) => [`${prefix}:${at}`, at] as const);
  await cache.setMany(entries("a"), { tags: ["early"] });
  await cache.setMany(entries("z"), { tags: ["early", "late"] });
  const { sample } = (await (await call("tags")).json()) as {
    sample: { exact: boolean; tags: { tag: string; entries: number; margin: number }[] };
  };
  const early = sample.tags.find(({ tag }) => tag === "early");
  expect(Math.abs((early?.entries ?? 0) - 6_000)).toBeLessThanOrEqual(early?.margin ?? 0);
  expect(sample).toMatchObject({ exact: false, ordered: true });
  const whole = (await (await call("tags", { exact: true })).json()) as { sample: typeof sample };
  expect(whole.sample).toMatchObject({ exact: true });
  expect(whole.sample.tags.map(({ tag, entries, margin }) => [tag, entries, margin])).toEqual([
    ["early", 6_000, 0],
    ["late", 3_000, 0],
  ]);
});

it("a scan looks at no more than 50,000 entries a second", async () => {
  const { cache } = opened();
  const gone = new AbortController();
  async function* scan(): AsyncIterable<EntryPage> {
    while (!gone.signal.aborted) yield { entries: [], scanned: 25_000, cursor: undefined };
  }
  Object.assign(cache, { scan });
  const clock = new ManualClock();
  const data = new DashboardData(requireDashboardOptions({ cache, authorize: () => true }), {}, clock);
  let lines = 0;
  const reading = (async () => {
    for await (const _ of data.keys({}, gone.signal)) lines++;
  })();
  await settle();
  expect(lines).toBe(1);
  await clock.advance(499);
  expect(lines).toBe(1);
  await clock.advance(1);
  expect(lines).toBe(2);
  gone.abort();
  await reading;
});

it("after an action the counts are new ones", async () => {
  const { cache, call } = opened({ writes: true });
  await cache.setMany({ a: 1, b: 2 }, { tags: ["t"] });
  const entries = async (): Promise<number | undefined> => {
    const { sample } = (await (await call("tags")).json()) as {
      sample: { tags: { tag: string; entries: number }[] };
    };
    return sample.tags.find(({ tag }) => tag === "t")?.entries;
  };
  expect(await entries()).toBe(2);
  await call("delete", { key: "a" });
  expect(await entries()).toBe(1);
});

/** A cache whose scan goes on until somebody ends it. `most`: steps at the same time; `scans`: that have made a step. */
function endless(cache: XCache) {
  let running = 0;
  let most = 0;
  let scans = 0;
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  async function* scan({ signal }: EntryScanOptions = {}): AsyncIterable<EntryPage> {
    let steps = 0;
    try {
      while (signal?.aborted !== true) {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        if (steps++ === 0) scans++;
        yield { entries: [], scanned: 0, cursor: undefined };
      }
    } finally {
      end();
    }
  }
  Object.assign(cache, { scan });
  return { ended, most: () => most, scans: () => scans };
}

it.each([
  ["keys", {}],
  ["tags", { exact: true }],
])("a reader of %s who leaves ends the scan on the server", async (name, body) => {
  const { cache, board } = opened();
  const { ended } = endless(cache);
  const server = createServer(board.node).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, "listening");
  const leaving: ClientRequest = send({
    ...{ host: "127.0.0.1", port: (server.address() as AddressInfo).port, path: `/cache/api/${name}` },
    ...{ method: "POST", headers: { "content-type": "application/json" } },
  });
  leaving.on("error", () => {});
  const arrived = once(server, "request");
  leaving.end(JSON.stringify(body));
  await arrived;
  if (name === "keys") {
    const [response] = (await once(leaving, "response")) as [IncomingMessage];
    await once(response, "data");
  }
  leaving.destroy();
  await ended;
});

it("scans take turns step by step: none waits for another to end, or for a reader that has stopped reading", async () => {
  const { cache, board, call } = opened();
  const { most, scans } = endless(cache);
  const counting = new AbortController();
  const counted = board.fetch(
    new Request("http://admin.example/api/tags", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"exact":true}',
      signal: counting.signal,
    }),
  );
  const answers = await Promise.all(["a", "b", "c"].map((prefix) => call("keys", { prefix })));
  const [stopping, ...others] = answers.map(({ body }) => body?.getReader());
  await stopping?.read();
  for (let line = 0; line < 20; line++)
    for (const reader of others) expect((await reader?.read())?.done).toBe(false);
  await until(() => scans() === 4, { what: "every scan has begun" });
  expect(most()).toBe(1);
  for (const reader of [stopping, ...others]) await reader?.cancel();
  counting.abort();
  expect((await counted).status).toBe(200);
});
