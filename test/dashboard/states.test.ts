// Empty pages and pages of a store that is down are accessible too, in both themes.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { XCache } from "../../src/index.ts";
import { type Browser, startBrowser } from "../support/browser.ts";
import { type MemcachedServer, startMemcached } from "../support/memcached.ts";
import { violations } from "./accessible.ts";

let browser: Browser;
let memcached: MemcachedServer;
beforeAll(async () => {
  [browser, memcached] = await Promise.all([startBrowser({ bypassCSP: true }), startMemcached()]);
});
afterAll(() => Promise.all([browser.close(), memcached.stop()]));

/** A page of a dashboard on this store. */
async function opened(kvUrl: string, options: Partial<DashboardOptions> = {}): Promise<Page> {
  const cache = new XCache({ kvUrl, operationTimeout: kvUrl === NOWHERE ? 0.1 : 20 });
  cache.on("error", () => {});
  onTestFinished(() => cache.disconnect());
  const server = createServer(dashboard({ cache, authorize: () => true, ...options }).node);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  return page;
}

/** Nobody listens there. */
const NOWHERE = "redis://127.0.0.1:1/0";

async function isAccessible(page: Page, state: string): Promise<void> {
  for (const _ of ["one theme", "the other"]) {
    const theme = await page.evaluate("document.documentElement.dataset.theme");
    expect([state, theme, await violations(page)]).toEqual([state, theme, []]);
    await page.getByRole("button", { name: /light and dark/ }).click();
  }
}

/** What each screen says of an empty cache. */
const EMPTY = {
  overview: "No process has reported yet",
  keys: "No entries match.",
  tags: "No entry carries a tag.",
  functions: "No calls of cached functions in this period.",
  health: "All checks pass.",
  alerts: "No process has alerts",
  settings: "key_prefix",
  more: "Functions",
};

test("an empty cache: every screen says what is missing", async () => {
  const page = await opened("memory://");
  for (const [screen, text] of Object.entries(EMPTY)) {
    await page.evaluate(`location.hash = ${JSON.stringify(screen)}`);
    await page.locator("main").getByText(text).first().waitFor();
    await isAccessible(page, screen);
  }
  await page.evaluate("location.hash = 'keys/missing'");
  await page.getByRole("searchbox", { name: /Beginning of the keys/ }).waitFor();
});

test("a store that cannot list: keys and tags say so", async () => {
  const page = await opened(memcached.url);
  await page.evaluate("location.hash = 'keys'");
  await page.getByText("The memcached store cannot list its keys").waitFor();
  await page.getByRole("textbox", { name: "Exact key" }).fill("missing");
  await page.getByRole("button", { name: "Look up" }).click();
  await page.getByText("no longer there").waitFor();
  await isAccessible(page, "keys");
  await page.evaluate("location.hash = 'tags'");
  await page.getByText("cannot list entries, so tags cannot be counted").waitFor();
  await isAccessible(page, "tags");
});

test("a store that is down, from the start and while a page is open", async () => {
  const fresh = await opened(NOWHERE);
  await fresh.getByRole("alert").waitFor();
  await isAccessible(fresh, "down from the start");
  const page = await opened("memory://");
  await page.evaluate("location.hash = 'keys'");
  await page.getByText("No entries match.").waitFor();
  // The server goes away: the page keeps what it knows.
  await page.route("**/api/*", (route) => route.abort());
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByText("Failed to fetch").first().waitFor();
  await isAccessible(page, "keys, down");
  await page.evaluate("location.hash = 'tags'");
  await page.locator("main").getByText("Failed to fetch").first().waitFor();
  await isAccessible(page, "tags, down");
  await page.evaluate("location.hash = 'settings'");
  await page.locator("main").getByText("Failed to fetch").first().waitFor();
  await isAccessible(page, "settings, down");
});

test("a visitor who may not look sees why, and nothing else", async () => {
  const page = await opened("memory://", { authorize: (_, { isPage }) => isPage });
  await page
    .getByRole("alert")
    .getByText(/not allowed/)
    .waitFor();
  await isAccessible(page, "not allowed");
  expect(await page.locator(".kpis, table").count()).toBe(0);
});
