// Many keys on a real Redis in a real Chromium: first rows at once, a bounded page and server, and a scan that ends with its tab.
// `npm run test:keys` does it with a million.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { dashboard } from "../../src/dashboard/index.ts";
import { type EntryPage, type EntryScanOptions, XCache } from "../../src/index.ts";
import { startBrowser } from "../support/browser.ts";
import { soon } from "../support/pace.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const KEYS = Number(process.env.XCACHE_TEST_KEYS ?? 100_000);
/** Of one script, which the server must not find too long. */
const BATCH = 50_000;
/** What one step of the store's scan returns at most. */
const STEP = 1_200;
/** What the page keeps before it replaces rows. */
const MOST_ROWS = 2_000;
const MB = 2 ** 20;

/** Copies the record of the only entry; its key is not part of it. */
const COPY = `
  local value = redis.call('GET', KEYS[1])
  local base = string.sub(KEYS[1], 1, -2)
  for at = ARGV[1], ARGV[2] do redis.call('SET', base .. string.format('%d', at), value, 'PX', 3600000) end`;

async function fill(redis: RedisServer, cache: XCache): Promise<void> {
  await cache.set("k:0", "a small value", { ttl: 3_600 });
  const [first = ""] = (await redis.cli("--scan", "--pattern", "*k:0")).split("\n");
  for (let from = 0; from < KEYS; from += BATCH)
    await redis.cli("EVAL", COPY, "1", first, String(from), String(Math.min(KEYS, from + BATCH) - 1));
}

/** Rows, and how many entries were looked at for them. */
async function shown(page: Page): Promise<{ rows: number; scanned: number }> {
  const text = await page.locator(".scanbar").innerText();
  const scanned = Number(/([\d,]+) of/.exec(text)?.[1]?.replaceAll(",", ""));
  return { rows: await page.locator(".keys tbody tr").count(), scanned };
}

test(`${KEYS} keys in the browser`, { timeout: 120_000 + KEYS }, async () => {
  const [redis, browser] = await Promise.all([startRedis(), startBrowser()]);
  onTestFinished(() => redis.stop());
  onTestFinished(() => browser.close());
  const cache = new XCache({ kvUrl: redis.url, keyPrefix: "shop", operationTimeout: 30 });
  onTestFinished(() => cache.disconnect());
  await fill(redis, cache);
  let scans = 0;
  let scanned = 0;
  const scan = cache.scan.bind(cache);
  Object.assign(cache, {
    async *scan(options: EntryScanOptions): AsyncIterable<EntryPage> {
      scans++;
      try {
        for await (const page of scan(options)) {
          scanned += page.scanned;
          yield page;
        }
      } finally {
        scans--;
      }
    },
  });
  const server = createServer(dashboard({ cache, authorize: () => true }).node);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const page = await browser.context.newPage();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await page.getByText(/^live, /).waitFor();

  // By role, the names of all rows would be worked out each time.
  const more = page.locator(".scanbar .btn", { hasText: "Show more" });
  const began = performance.now();
  await page.evaluate("location.hash = 'keys'");
  await page.locator(".keys tbody tr").first().waitFor();
  expect(performance.now() - began).toBeLessThan(soon(1_000));
  await more.waitFor();
  expect((await shown(page)).scanned).toBeLessThan(STEP);

  let before = 0;
  for (let times = 0; times < 4; times++) {
    before = (await shown(page)).scanned;
    await more.click();
    await until(async () => (await shown(page)).scanned > before, { what: "more entries" });
    await more.waitFor();
    const { rows } = await shown(page);
    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThan(MOST_ROWS + STEP);
  }

  const held = process.memoryUsage().rss;
  scanned = 0;
  await page.getByRole("searchbox", { name: /Beginning of the keys/ }).fill("nothing*");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await until(() => scanned > 20_000, { what: "a scan for what is not there" });
  expect(await page.locator(".keys tbody tr").count()).toBe(0);
  expect(scans).toBe(1);
  await page.close();
  await until(() => scans === 0, { what: "the scan has ended with its tab" });
  expect(scanned).toBeLessThan(KEYS / 2);
  expect(process.memoryUsage().rss - held).toBeLessThan(150 * MB);
});
