// The page in a real Chromium behind reverse proxies, in two tabs, with a clock that is wrong, and after a sleep.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { XCache } from "../../src/index.ts";
import { type Browser, startBrowser } from "../support/browser.ts";
import { Relay } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { type ProxyHabits, startProxy } from "./proxy.ts";

const HOUR = 3_600_000;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** A dashboard of a cache in this process, and its port. */
async function served(options: Partial<DashboardOptions> = {}) {
  const cache = new XCache({ kvUrl: "memory://", keyPrefix: "shop" });
  onTestFinished(() => cache.disconnect());
  const board = dashboard({ cache, authorize: () => true, values: true, writes: true, ...options });
  const server = createServer(board.node);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { cache, port: (server.address() as AddressInfo).port };
}

interface Tab extends Page {
  /** What the page has complained about, one text for each time. */
  alerts(): Promise<string[]>;
}

async function opened({ clock }: { readonly clock?: number } = {}): Promise<Tab> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.addInitScript(`
    globalThis.alerts = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes)
        for (const node of addedNodes) if (node.role === "alert") alerts.push(node.textContent);
    }).observe(document, { childList: true, subtree: true });`);
  if (clock !== undefined) await page.clock.install({ time: clock });
  return Object.assign(page, { alerts: () => page.evaluate<string[]>("alerts") });
}

const behind = async (habits: ProxyHabits) => {
  const { cache, port } = await served();
  return { cache, proxy: await startProxy(port, habits) };
};

const rows = (page: Page, label: string): Promise<string[]> =>
  page.getByRole("region", { name: label, exact: true }).locator("tbody tr").allInnerTexts();

test.each(["", "/"])(
  "behind a proxy that strips its path, the page works at that path followed by %j",
  async (slash) => {
    const { cache, proxy } = await behind({ strips: "/tools/cache" });
    await cache.set("user:1", 1);
    const page = await opened();
    await page.goto(`${proxy.url}${slash}#keys`);
    await page.getByRole("button", { name: "user:1", exact: true }).waitFor();
    expect(proxy.asked.every((path) => path.startsWith("/tools/cache"))).toBe(true);
  },
);

test("behind a proxy that replaces Host, the page's own requests are not foreign", async () => {
  const { cache, proxy } = await behind({ replacesHost: true });
  await cache.set("user:1", 1);
  const page = await opened();
  await page.goto(`${proxy.url}/#keys`);
  await page.getByRole("button", { name: "user:1", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Deleted.").waitFor();
  expect(await cache.exists("user:1")).toBe(false);
});

test("behind a proxy that compresses, the page is compressed, and its live figures are not held back", async () => {
  const { proxy } = await behind({ compresses: true });
  const page = await opened();
  const answer = await page.goto(`${proxy.url}/`);
  expect(answer?.headers()["content-encoding"]).toBe("gzip");
  await page.getByText(/^live, /).waitFor();
  expect(await page.alerts()).toEqual([]);
  expect(proxy.asked.filter((path) => path.endsWith("api/overview"))).toEqual([]);
});

test("behind a proxy that collects whole answers, the figures are asked for one by one", async () => {
  const { cache, proxy } = await behind({ collects: true });
  const page = await opened({ clock: Date.now() });
  await page.goto(`${proxy.url}/#keys`);
  await until(() => proxy.asked.some((path) => path.endsWith("api/live")), { what: "a stream is asked for" });
  await page.getByText("connecting").waitFor();
  const asked = (): number => proxy.asked.filter((path) => path.endsWith("api/overview")).length;
  // Neither of them waits for real time.
  await until(() => page.clock.fastForward(6_000).then(() => asked() > 0), { what: "figures are asked for" });
  await page.getByText("No entries match.").waitFor();
  await until(() => page.clock.fastForward(2_000).then(() => asked() > 2), { what: "and again" });
  await cache.set("user:1", 1);
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByRole("button", { name: "user:1", exact: true }).waitFor();
});

test("behind a proxy that ends streams, they are opened again without a word, and a scan can be continued", async () => {
  const { cache, proxy } = await behind({ endsStreams: true });
  await cache.setMany(Array.from({ length: 3_000 }, (_, at) => [`k:${at}`, at] as const));
  const page = await opened({ clock: Date.now() });
  await page.goto(`${proxy.url}/#keys`);
  const asked = (): number => proxy.asked.filter((path) => path.endsWith("api/live")).length;
  await until(() => page.clock.fastForward(1_000).then(() => asked() > 3), { what: "opened four times" });
  expect(await page.alerts()).toEqual([]);
  await page.getByText(/^live, /).waitFor();
  await page.getByText("the connection ended before the scan did").waitFor();
  const before = (await rows(page, "Keys")).length;
  expect(before).toBeGreaterThan(0);
  await page.getByRole("button", { name: "Show more" }).click();
  await until(async () => (await rows(page, "Keys")).length > before, { what: "more rows" });
  expect(new Set(await rows(page, "Keys")).size).toBe((await rows(page, "Keys")).length);
});

test("after a sleep whose connections are dead, the figures are current again", async () => {
  const { port } = await served();
  const relay = await Relay.start(port);
  onTestFinished(() => relay.stop());
  const page = await opened({ clock: Date.now() });
  await page.goto(`http://127.0.0.1:${relay.port}/`);
  await page.getByText(/^live, [01] s ago/).waitFor();
  relay.strand();
  await page.clock.fastForward(8 * HOUR);
  await until(
    async () => {
      await page.clock.fastForward(500);
      return /^live, [012] s ago/.test(await page.locator(".live").innerText());
    },
    { what: "current figures" },
  );
  expect(await page.getByRole("alert").count()).toBe(0);
});

test.each([-HOUR, HOUR])(
  "with a browser clock that is off by %i ms, ages and lifetimes are right",
  async (skew) => {
    const { cache: shop, port } = await served();
    await shop.set("user:1", 1, { ttl: 600, tags: ["users"] });
    await shop.set("order:1", 1, { ttl: 600, tags: ["orders"] });
    await shop.invalidateTags("users");
    await shop.set("user:1", 1, { ttl: 600, tags: ["users"] });
    const page = await opened({ clock: Date.now() + skew });
    await page.goto(`http://127.0.0.1:${port}/#tags`);
    const invalidated = page
      .getByRole("region", { name: "Tags", exact: true })
      .locator("tr", { hasText: "users" });
    await invalidated.getByText(/^(now|\d+s ago|1m( \d+s)? ago)$/).waitFor();
    await page.evaluate("location.hash = 'keys'");
    await page.getByRole("button", { name: "user:1", exact: true }).click();
    await page
      .locator(".meta")
      .getByText(/^9m \d+s$/)
      .waitFor();
    // Eleven minutes later, in the same tab.
    await page.clock.fastForward(660_000);
    await page.locator(".meta").getByText("expired").waitFor();
    await until(async () => (await rows(page, "Keys")).every((row) => row.includes("expired")), {
      what: "every row says so",
    });
  },
);

test("a change in one tab is seen in the other: rows, the entry that is open, and tags", async () => {
  const { cache, port } = await served();
  await cache.setMany({ "user:1": 1, "user:2": 2 }, { tags: ["users"] });
  await cache.set("order:1", 1, { tags: ["orders"] });
  const [one, two] = [await opened(), await opened()];
  for (const page of [one, two]) {
    await page.goto(`http://127.0.0.1:${port}/#keys`);
    await page.getByRole("button", { name: "user:1", exact: true }).click();
    await page.getByRole("definition").first().waitFor();
  }
  await one.getByRole("button", { name: "Delete" }).click();
  await two.getByText("no longer there").waitFor();
  for (const page of [one, two])
    await page.getByRole("button", { name: "user:1", exact: true }).waitFor({ state: "detached" });
  await two.getByRole("button", { name: "user:2", exact: true }).waitFor();
  await one.evaluate("location.hash = 'tags'");
  await one.getByRole("button", { name: "orders", exact: true }).waitFor();
  await one.getByRole("button", { name: "users", exact: true }).click();
  await one.getByLabel(/Type the tag/).fill("users");
  await one.getByRole("button", { name: "Invalidate" }).click();
  await two.getByRole("button", { name: "user:2", exact: true }).waitFor({ state: "detached" });
  expect(await rows(two, "Keys")).toEqual([expect.stringMatching(/^order:1/)]);
});

test("a long scan in one tab does not keep another waiting, and both are told apart", async () => {
  const { cache, port } = await served();
  await cache.setMany(Array.from({ length: 100_000 }, (_, at) => [`k:${at}`, at] as const));
  await cache.set("z:last", 1);
  const [one, two] = [await opened(), await opened()];
  await one.goto(`http://127.0.0.1:${port}/#keys/${encodeURIComponent("nothing*")}`);
  await one.getByRole("button", { name: "Stop" }).waitFor();
  await two.goto(`http://127.0.0.1:${port}/#keys/${encodeURIComponent("k:7")}`);
  await two.getByRole("button", { name: "k:7", exact: true }).waitFor();
  expect(await one.getByRole("button", { name: "Stop" }).count()).toBe(1);
  expect(await rows(one, "Keys")).toEqual([]);
});

test("the address with a new token, opened in the same tab, is used and leaves the address bar", async () => {
  const { port } = await served({
    authorize: (request, { isPage }) => isPage || request.headers.get("authorization") === "Bearer right",
  });
  const page = await opened();
  await page.goto(`http://127.0.0.1:${port}/#token=wrong`);
  await page.getByText(/not allowed/).waitFor();
  await page.goto(`http://127.0.0.1:${port}/#token=right`);
  await page.getByText(/^live, /).waitFor();
  expect(new URL(page.url()).hash).toBe("#overview");
});
