// The dashboard on every store, over plain HTTP, and on the two that look different in a browser: memcached, which cannot list,
// and a cache with a database feed. The command line looks at the same stores from a process of its own.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { XCache } from "../../src/index.ts";
import { xcache } from "../behaviour/cli/installed.ts";
import { feedStage } from "../db/feed/feed-stage.ts";
import { type Browser, startBrowser } from "../support/browser.ts";
import { type MemcachedServer, startMemcached } from "../support/memcached.ts";
import { OwnProcess } from "../support/own-process.ts";
import { startRedis } from "../support/redis.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { type RedisSentinel, startSentinel } from "../support/redis-sentinel.ts";
import { runFolder } from "../support/run-folder.ts";
import { startUi } from "./ui-process.ts";

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

  it("xcache ui shows it from a process of its own, to those who have its token, and ends with Ctrl-C", {
    timeout: 60_000,
  }, async () => {
    const kvUrl = (STORES[store] as () => string)();
    const prefix = `ui-${store}`;
    const cache = new XCache({ kvUrl, keyPrefix: prefix, operationTimeout: 20 });
    onTestFinished(() => cache.disconnect());
    await cache.set("user:1", { name: "Ada" }, { ttl: 600, tags: ["users"] });
    const ui = await startUi("--kv-url", kvUrl, "--prefix", prefix, "--timeout", "20s");
    expect(ui.notes()).toMatch(/^read-only; the address contains a secret; press Ctrl-C to stop$/m);
    const overview = await ui.call("overview");
    const isPrivate = store === "memory";
    expect(overview).toMatchObject({
      status: 200,
      body: { listable: canList, prefix, allowed: { writes: false } },
    });
    expect([/memory:\/\/ is private/.test(ui.notes()), overview.body.note !== undefined]).toEqual([
      isPrivate,
      isPrivate,
    ]);
    if (!isPrivate) {
      const { body } = await ui.call("entry", { key: "user:1" });
      expect(body).toMatchObject({ state: "fresh", tags: ["users"] });
      expect(body).not.toHaveProperty("value");
    }
    const page = await fetch(`${ui.origin}/`);
    expect([page.status, (await page.text()).includes("<title>xcache</title>")]).toEqual([200, true]);
    for (const [headers, status] of [
      [{ authorization: "" }, 401],
      [{ authorization: "Bearer wrong" }, 401],
      [{ host: "evil.example" }, 421],
      [{ host: `localhost:${new URL(ui.origin).port}` }, 200],
      [{ origin: "http://evil.example" }, 403],
      [{ "sec-fetch-site": "cross-site" }, 403],
    ] as const)
      expect([headers, (await ui.call("settings", {}, headers)).status]).toEqual([headers, status]);
    expect((await ui.call("delete", { key: "user:1" })).status).toBe(403);
    expect(await cache.exists("user:1")).toBe(true);
    // A page that is open does not keep it.
    const live = await ui.open("live");
    expect(await ui.interrupted()).toBe(130);
    await live.ended;
  });

  if (store === "memory") return;

  it("the command line shows processes, functions and advice from another process", {
    timeout: 60_000,
  }, async () => {
    const kvUrl = (STORES[store] as () => string)();
    const cache = new XCache({ kvUrl, keyPrefix: "cli", operationTimeout: 20 });
    onTestFinished(() => cache.disconnect());
    await cache.set("user:1", 1, { ttl: Number.POSITIVE_INFINITY });
    const lines = [["stats", "--functions"], ["stats", "--processes"], ["advise"], ["tags", "user:1"]];
    // One process for all of them: most of the time of a command is its start.
    const commands = new OwnProcess(COMMANDS, { settings: { kvUrl, lines } });
    for (const args of lines) expect(await commands.heard("ran")).toMatchObject({ args, code: 0 });
    expect((await commands.ended()).code).toBe(0);
    expect(commands.errors).toBe("");
    const shown = commands.output.trimEnd().split("\n");
    expect(shown.length).toBeGreaterThanOrEqual(1);
    for (const line of shown) expect(JSON.parse(line)).toBeTypeOf("object");
  });
});

/** Runs command lines one after the other. */
const COMMANDS = `
import { runProgram } from "./cli/program.js";
Object.assign(process.env, { XCACHE_KV_URL: settings.kvUrl, XCACHE_KEY_PREFIX: "cli", XCACHE_OPERATION_TIMEOUT: "20" });
for (const args of settings.lines) say("ran", { args, code: await runProgram([...args, "--json"]) });
process.disconnect();
`;

describe("xcache ui", () => {
  it("says that a port is taken, and which store cannot be reached, and ends", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const [busy, lost] = await Promise.all([
      xcache(["ui", "--no-open", "--kv-url", "memory://", "--port", String(port)]),
      xcache(["ui", "--no-open", "--kv-url", "redis://127.0.0.1:1/0", "--timeout", "1s"]),
    ]);
    expect(busy).toMatchObject({ code: 1, stdout: "" });
    expect(busy.stderr).toMatch(new RegExp(`^error: port ${port} is taken\nhint: .*--port`));
    expect(lost).toMatchObject({ code: 3, stdout: "" });
    expect(lost.stderr).toMatch(/^error: .*127\.0\.0\.1:1/);
  });

  it("says that the store has gone away, and recovers when it is back, which the page shows", {
    timeout: 60_000,
  }, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const ui = await startUi("--kv-url", redis.url, "--timeout", "300ms");
    const page = await browser.context.newPage();
    onTestFinished(() => page.close());
    await page.goto(ui.url);
    await page.getByText(/^live, /).waitFor();
    await redis.kill();
    await page
      .getByRole("alert")
      .getByText(/not current: .*Trying again/)
      .waitFor();
    expect((await ui.call("overview")).status).toBe(503);
    await redis.restart();
    await page.getByRole("alert").waitFor({ state: "detached" });
    expect((await ui.call("overview")).status).toBe(200);
    expect(await ui.interrupted()).toBe(130);
    await page.getByRole("alert").waitFor();
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
  const cache = new XCache({ kvUrl: sentinel.url, keyPrefix: "large", operationTimeout: 20 });
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

describe("with a database", () => {
  const stage = feedStage();

  test("the health screen shows a feed that leads, is down, and is back", { timeout: 120_000 }, async () => {
    const { cache, feed } = await stage.member({ silentFor: 2 });
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
});
