// The dashboard on every store, over plain HTTP, and on the two that look different in a browser: memcached, which cannot list,
// and a cache with a database feed. The command line looks at the same stores from a process of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { XCache } from "../../src/index.ts";
import { jsonLines, xcache } from "../behaviour/cli/installed.ts";
import { feedStage } from "../db/feed/feed-stage.ts";
import { type Browser, startBrowser } from "../support/browser.ts";
import { type MemcachedServer, startMemcached } from "../support/memcached.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { type RedisSentinel, startSentinel } from "../support/redis-sentinel.ts";
import { runFolder } from "../support/run-folder.ts";

const stage = feedStage();
let cluster: RedisCluster;
let sentinel: RedisSentinel;
let memcached: MemcachedServer;
let browser: Browser;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(runFolder(), "stores-"));
  [cluster, sentinel, memcached, browser] = await Promise.all([
    startCluster(),
    startSentinel(),
    startMemcached(),
    startBrowser(),
  ]);
}, 120_000);
afterAll(async () => {
  await browser.close();
  await Promise.all([cluster.stop(), sentinel.stop(), memcached.stop()]);
  rmSync(directory, { recursive: true, force: true });
});

const STORES: Readonly<Record<string, () => string>> = {
  memory: () => "memory://",
  disk: () => `file://${directory}/store`,
  cluster: () => cluster.url,
  sentinel: () => sentinel.url,
  memcached: () => memcached.url,
};

function opened(cache: XCache, options: Partial<DashboardOptions> = {}) {
  const board = dashboard({ cache, authorize: () => true, values: true, writes: true, ...options });
  const call = async (name: string, body: unknown = {}) => {
    const request = new Request(`http://admin.example/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await board.fetch(request);
    const lines = (await answer.text()).trimEnd().split("\n");
    return { status: answer.status, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
  };
  return { board, call };
}

/** The address of a server that serves it. */
async function served(board: ReturnType<typeof dashboard>): Promise<string> {
  const server = createServer(board.node);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

describe.each(Object.keys(STORES))("on %s", (store) => {
  const canList = store !== "memcached";

  it("every part of the dashboard answers, and what cannot be listed says why", {
    timeout: 60_000,
  }, async () => {
    const kvUrl = (STORES[store] as () => string)();
    const cache = new XCache({ kvUrl, keyPrefix: "shop", operationTimeout: 20 });
    onTestFinished(() => cache.disconnect());
    await cache.setMany(
      Array.from({ length: 30 }, (_, at) => [`user:${at}`, { at }] as const),
      { ttl: 600, tags: ["users"] },
    );
    const { call } = opened(cache);
    const overview = (await call("overview")).lines[0];
    expect(overview).toMatchObject({ listable: canList, health: { status: "healthy" } });
    const keys = await call("keys", { prefix: "user:", exact: "user:7" });
    expect(keys.lines[0]).toMatchObject({ exact: { key: "user:7", type: "object" } });
    const rows = keys.lines.flatMap(({ entries = [] }) => entries as { key: string }[]);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(canList ? 30 : 0);
    if (!canList) expect(keys.lines.at(-1)?.failed).toMatch(/cannot list keys/);
    const tags = (await call("tags", { exact: true })).lines[0] as { sample?: { tags: unknown[] } };
    expect(tags.sample?.tags[0]).toEqual(
      canList ? expect.objectContaining({ tag: "users", entries: 30 }) : undefined,
    );
    expect((await call("entry", { key: "user:7" })).lines[0]).toMatchObject({
      state: "fresh",
      tags: ["users"],
      value: { text: expect.stringContaining("at: 7"), cut: false },
    });
    expect((await call("settings")).status).toBe(200);
    expect((await call("delete", { key: "user:7" })).lines[0]).toEqual({ deleted: 1 });
    expect((await call("invalidate", { tag: "users" })).status).toBe(200);
    expect(await cache.exists("user:8")).toBe(false);
    expect((await call("entry", { key: "user:8" })).lines[0]).toEqual({ missing: true });
  });

  if (store === "memory") return;

  it("the command line shows processes, functions and advice from another process", {
    timeout: 60_000,
  }, async () => {
    const kvUrl = (STORES[store] as () => string)();
    const env = { XCACHE_KV_URL: kvUrl, XCACHE_KEY_PREFIX: "cli", XCACHE_OPERATION_TIMEOUT: "20" };
    const cache = new XCache({ kvUrl, keyPrefix: "cli", operationTimeout: 20 });
    onTestFinished(() => cache.disconnect());
    await cache.set("user:1", 1, { ttl: Number.POSITIVE_INFINITY });
    for (const args of [["stats", "--functions"], ["stats", "--processes"], ["advise"], ["tags", "user:1"]]) {
      const ran = await xcache([...args, "--json"], { env });
      expect([args, ran.code, ran.stderr]).toEqual([args, 0, ""]);
      for (const line of jsonLines(ran)) expect(line).toBeTypeOf("object");
    }
  });
});

test("on memcached the screens say what cannot be listed, and an exact key is found", {
  timeout: 60_000,
}, async () => {
  const cache = new XCache({ kvUrl: memcached.url, keyPrefix: "page", operationTimeout: 20 });
  onTestFinished(() => cache.disconnect());
  await cache.set("user:1", { name: "Ada" }, { ttl: 600, tags: ["users"] });
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  const address = await served(opened(cache).board);
  await page.goto(`${address}#keys`);
  await page.getByText("The memcached store cannot list its keys").waitFor();
  await page.getByRole("textbox", { name: "Exact key" }).fill("user:1");
  await page.getByRole("button", { name: "Look up" }).click();
  await page.getByLabel("Value", { exact: true }).getByText("Ada").waitFor();
  await page.evaluate("location.hash = 'tags'");
  await page.getByText("cannot list entries, so tags cannot be counted").waitFor();
  for (const screen of ["overview", "functions", "health", "alerts", "settings"]) {
    await page.evaluate(`location.hash = ${JSON.stringify(screen)}`);
    await page.getByRole("heading", { level: 1, name: screen }).waitFor();
  }
  expect(problems).toEqual([]);
});

test("a large value says how much of it is shown, and shows more on request", {
  timeout: 60_000,
}, async () => {
  const cache = new XCache({ kvUrl: stage.redis.url, keyPrefix: "large", operationTimeout: 20 });
  onTestFinished(() => cache.disconnect());
  await cache.set(
    "list",
    Array.from({ length: 200_000 }, (_, at) => at),
  );
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.goto(`${await served(opened(cache).board)}#keys`);
  await page.getByRole("button", { name: "list", exact: true }).click();
  await page.getByText(/64\.0 KiB of .* were read; 200,000 members/).waitFor();
  const before = (await page.getByLabel("Value", { exact: true }).innerText()).length;
  await page.getByRole("button", { name: "Show more" }).click();
  await page.waitForFunction(`document.querySelector("pre.json").innerText.length > ${before}`);
  await page.getByRole("button", { name: /Download the whole value/ }).waitFor();
});

test("the health screen shows a feed that leads, is down, and is back", { timeout: 120_000 }, async () => {
  const { cache, feed } = await stage.member();
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.goto(`${await served(opened(cache).board)}#health`);
  const check = page.locator(".checks li", { hasText: "feed" });
  await check.getByText(/ok: .*leader/).waitFor();
  expect(feed.status()).toMatchObject({ role: "leader", alive: true });
  await stage.server.kill("SIGINT");
  await check.getByText(/failed: /).waitFor({ timeout: 60_000 });
  await page
    .locator(".banner")
    .getByText(/feed: /)
    .waitFor();
  await stage.server.restart();
  await check.getByText(/ok: .*leader/).waitFor({ timeout: 60_000 });
});
