// The cache handlers in a real Next application: two server processes on one Redis.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildNextApp, type NextApp, type NextServer } from "../../ecosystem/next-app.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

/** Answers with how often a path was requested. */
const calls = new Map<string, number>();
const upstream = createServer((request, response) => {
  const count = (calls.get(request.url!) ?? 0) + 1;
  calls.set(request.url!, count);
  response.end(`call-${count}`);
});

let redis: RedisServer;
let app: NextApp;
let one: NextServer;
let other: NextServer;

beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  redis = await startRedis();
  app = await buildNextApp(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`, redis.url);
  [one, other] = await Promise.all([app.start(), app.start()]);
}, 300_000);

afterAll(async () => {
  await app?.remove();
  await redis?.stop();
  upstream.close();
});

interface Seen {
  /** The upstream call whose result is shown. */
  readonly call: string | undefined;
  /** The cache state that Next reports. */
  readonly state: string | null;
}

async function see(server: NextServer, path: string): Promise<Seen> {
  const answer = await server.get(path);
  expect(answer.status).toBe(200);
  return { call: /call-\d+/.exec(await answer.text())?.[0], state: answer.headers.get("x-nextjs-cache") };
}

/** Next stores a page, and passes a revalidation on, after it has answered. */
async function seeOnce(server: NextServer, path: string, wanted: Partial<Seen>): Promise<Seen> {
  const isWanted = ({ call, state }: Seen): boolean =>
    call === (wanted.call ?? call) && state === (wanted.state ?? state);
  return until(
    async () => {
      const seen = await see(server, path);
      return isWanted(seen) && seen;
    },
    { what: `${path} is ${JSON.stringify(wanted)}` },
  );
}

const seeStored = (server: NextServer, path: string): Promise<Seen> =>
  seeOnce(server, path, { state: "HIT" });

const revalidate = async (server: NextServer, query: string): Promise<void> => {
  expect(await (await server.get(`/revalidate?${query}`)).text()).toBe("revalidated");
};

test("a page rendered by one server is served completely by the other", async () => {
  expect(await see(one, "/items/parts")).toEqual({ call: "call-1", state: "MISS" });
  expect((await seeStored(other, "/items/parts")).call).toBe("call-1");
  const data = await other.get("/items/parts", { rsc: "1" });
  expect(data.headers.get("content-type")).toContain("text/x-component");
  expect(await data.text()).toContain("call-1");
  const segment = await other.get("/items/parts", {
    rsc: "1",
    "next-router-prefetch": "1",
    "next-router-segment-prefetch": "/_tree",
  });
  expect([segment.status, segment.headers.get("content-type")]).toEqual([200, "text/x-component"]);
  expect(calls.get("/fetch/parts")).toBe(1);
});

test("a route handler's bytes are the same from both servers", async () => {
  const bytesOf = async (server: NextServer) =>
    Buffer.from(await (await server.get("/files/bytes")).arrayBuffer()).toString("latin1");
  const first = await bytesOf(one);
  expect(first).toBe("\x00\xff\x80\ncall-1");
  await seeStored(other, "/files/bytes");
  expect(await bytesOf(other)).toBe(first);
});

test("an expired tag takes effect on the other server, for the page and for the data in it", async () => {
  await see(one, "/items/tagged");
  await seeStored(other, "/items/tagged");
  await revalidate(one, "tag=data-tagged");
  await seeOnce(other, "/items/tagged", { call: "call-2" });
  expect((await seeStored(one, "/items/tagged")).call).toBe("call-2");
  expect(calls.get("/fetch/tagged")).toBe(2);
});

test("a revalidated path takes effect on the other server, including data without its tag", async () => {
  await see(one, "/items/path");
  await seeStored(other, "/items/path");
  await revalidate(one, "path=/items/path");
  await seeOnce(other, "/items/path", { call: "call-2" });
  expect((await seeStored(one, "/items/path")).call).toBe("call-2");
});

test("a tag revalidated with a profile is served stale on the other server and refreshed in the background", async () => {
  await see(one, "/items/stale");
  await seeStored(other, "/items/stale");
  await revalidate(one, "tag=data-stale&max");
  expect((await seeOnce(other, "/items/stale", { state: "STALE" })).call).toBe("call-1");
  await seeOnce(other, "/items/stale", { call: "call-2" });
  expect((await see(one, "/items/stale")).call).toBe("call-2");
});

test('a "use cache" entry is shared, expired and made stale in the same way', async () => {
  const shown = async (server: NextServer) => (await see(server, "/used/a")).call;
  /** A result shown twice is stored: Next stores it after answering, and renders again for requests before that. */
  const stored = (server: NextServer, isNew: (call: string) => boolean = () => true) =>
    until(
      async () => {
        const call = await shown(server);
        return call !== undefined && isNew(call) && call === (await shown(server)) && call;
      },
      { what: "/used/a is stored" },
    );
  const first = await stored(one);
  expect(await shown(other)).toBe(first);
  await revalidate(one, "tag=used-a");
  const second = await stored(other, (call) => call !== first);
  expect(await shown(one)).toBe(second);
  await revalidate(other, "tag=used-a&max");
  expect(await shown(one)).toBe(second);
  const third = await stored(one, (call) => call !== second);
  expect(await shown(other)).toBe(third);
});
