// The dashboard in a real Chromium, on a real Redis with three processes: every screen, filters, actions, hostile content.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { serveLocally } from "../../src/dashboard/local.ts";
import { XCache } from "../../src/index.ts";
import { type Browser, startBrowser } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { violations } from "./accessible.ts";
import { BIDI_KEY, type Fleet, HOSTILE_KEY, startFleet } from "./fleet.ts";

const SCREENS = ["overview", "keys", "tags", "functions", "health", "alerts", "settings"];
/** Pictures of every screen are kept there if it is set. */
const PICTURES = process.env.XCACHE_TEST_PICTURES;

let fleet: Fleet;
let browser: Browser;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  [fleet, browser] = await Promise.all([startFleet(), startBrowser({ bypassCSP: true })]);
  page = await browser.context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(fleet.board.url);
  await until(async () => (await page.locator('[aria-label="Processes"] tbody tr').count()) === 3, {
    what: "three processes are listed",
  });
}, 120_000);
afterAll(async () => {
  await browser.close();
  await fleet.stop();
});

async function show(screen: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(screen)}`);
  const [name = ""] = screen.split("/");
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

const rows = (label: string): Promise<string[]> =>
  page.getByRole("region", { name: label, exact: true }).locator("tbody tr").allInnerTexts();

async function picture(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const devtools = await browser.context.newCDPSession(page);
  const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: 70 });
  await devtools.detach();
  writeFileSync(path, Buffer.from(data, "base64"));
}

test("the token leaves the address bar, and the overview shows the fleet and what is worth a look", async () => {
  expect(new URL(page.url()).hash).toBe("#overview");
  await page.getByRole("button", { name: "15m" }).click();
  await page.getByText("getInventory never hits").waitFor();
  const processes = await rows("Processes");
  expect(processes).toHaveLength(3);
  for (const each of processes) expect(each).toMatch(/· \d+/);
});

test.each([
  ["light", 1440],
  ["dark", 1440],
  ["light", 390],
  ["dark", 390],
] as const)("every screen is accessible, %s at %i pixels", async (theme, width) => {
  await page.setViewportSize({ width, height: 900 });
  const present = await page.evaluate("document.documentElement.dataset.theme");
  if (present !== theme) await page.getByRole("button", { name: /light and dark/ }).click();
  for (const screen of SCREENS) {
    await show(screen);
    await page.waitForFunction("document.querySelectorAll('.card').length > 0");
    expect([screen, await violations(page)]).toEqual([screen, []]);
    const widest = await page.evaluate("document.documentElement.scrollWidth");
    expect([screen, widest]).toEqual([screen, width]);
    if (PICTURES !== undefined) await picture(join(PICTURES, `${screen}-${width}-${theme}.webp`));
  }
});

test("what is typed while the page has not been painted yet is searched for", async () => {
  const late = await browser.context.newPage();
  // Frames come late on a busy machine, and not at all in a tab in the background.
  await late.addInitScript(`{
    const timeout = setTimeout;
    const frames = [];
    window.requestAnimationFrame = (run) => frames.push(run);
    window.setTimeout = (run, ms, ...more) => (ms > 20 && ms < 200 ? frames.push(run) : timeout(run, ms, ...more));
    window.paint = () => {
      for (const run of frames.splice(0)) run();
    };
  }`);
  await late.goto(fleet.board.url);
  await late.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await late.evaluate("location.hash = 'keys'");
  const box = late.getByRole("searchbox", { name: /Beginning of the keys/ });
  await box.fill("session:");
  await late.evaluate("paint()");
  expect(await box.inputValue()).toBe("session:");
  await late.close();
});

test("keys are filtered by beginning, glob, tag and type, and one is found by its exact name", {
  timeout: 60_000,
}, async () => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await show("keys");
  const box = page.getByRole("searchbox", { name: /Beginning of the keys/ });
  const search = async (text: string, first: RegExp): Promise<string[]> => {
    await box.fill(text);
    await page.getByRole("button", { name: "Search", exact: true }).click();
    return until(
      async () => {
        const found = await rows("Keys");
        return found.length > 0 && found.every((row) => first.test(row)) && found;
      },
      { what: `only rows with ${first}` },
    );
  };
  expect(await search("session:", /^session:/)).toHaveLength(40);
  expect(await search("*User(1*", /^getUser\(1\)/)).toHaveLength(1);
  await page.getByRole("checkbox", { name: "similar" }).check();
  expect((await search("sesion:17", /^session:/))[0]).toMatch(/^session:17/);
  await page.getByRole("checkbox", { name: "similar" }).uncheck();
  await box.fill("");
  await page.getByRole("textbox", { name: "Tag" }).fill("<b>tag</b>");
  // What is half typed survives that the page is drawn again, as every two seconds.
  await page.evaluate("document.querySelector('.check input').click()");
  await page.getByRole("checkbox", { name: "similar", checked: true }).waitFor();
  await page.evaluate("document.querySelector('.check input').click()");
  await page.getByRole("checkbox", { name: "similar", checked: false }).waitFor();
  expect(await page.getByRole("textbox", { name: "Tag" }).inputValue()).toBe("<b>tag</b>");
  await page.getByRole("textbox", { name: "Tag" }).press("Enter");
  await until(async () => (await rows("Keys")).length === 1, { what: "the tag's entry" });
  await page.getByRole("textbox", { name: "Tag" }).fill("");
  await page.getByRole("textbox", { name: "Tag" }).press("Enter");
  await page.getByRole("combobox", { name: "Type" }).selectOption("map");
  await until(async () => (await rows("Keys")).length === 1, { what: "the only map" });
  await page.getByRole("combobox", { name: "Type" }).selectOption("");
  await page.getByRole("searchbox", { name: "Find a key, tag or function" }).press("Escape");
  await page.keyboard.press("Tab");
  await page.locator("h1").click();
  await page.keyboard.press("/");
  await page.keyboard.type("big");
  await page.keyboard.press("Enter");
  await until(async () => (await rows("Keys")).some((row) => row.startsWith("big")), {
    what: "the exact key",
  });
});

test("hostile keys and values are text: nothing of them runs, and what is not seen is shown", {
  timeout: 60_000,
}, async () => {
  await show(`keys/${encodeURIComponent("user:")}`);
  await page.getByRole("button", { name: HOSTILE_KEY }).click();
  const value = page.getByLabel("Value", { exact: true });
  await until(async () => (await value.innerText()) === "<script>document.title='owned'</script>", {
    what: "the value as text",
  });
  await page.getByRole("button", { name: /^user:\\u202egnp\.exe\\x07/ }).click();
  await until(async () => (await value.innerText()).includes("Map(1)"), { what: "the map" });
  expect(await page.title()).toBe("xcache");
  expect(await page.locator("img").count()).toBe(0);
  expect(complaints).toEqual([]);
  expect(BIDI_KEY).toContain("\u202e");
});

test("an entry is deleted, and a tag invalidated after its name was typed", async () => {
  await show("keys/session:1");
  await page.getByRole("button", { name: "session:1", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Deleted.").waitFor();
  expect(await fleet.cache.exists("session:1")).toBe(false);
  await show("tags");
  await page.getByRole("button", { name: "users", exact: true }).click();
  const button = page.getByRole("button", { name: "Invalidate" });
  expect(await button.isDisabled()).toBe(true);
  await page.getByLabel(/Type the tag/).fill("users");
  await button.click();
  await until(async () => !(await fleet.cache.exists(BIDI_KEY)), { what: "the tag is invalidated" });
});

test("functions, health, alerts and settings show what the processes report", {
  timeout: 60_000,
}, async () => {
  await show("functions");
  const functions = await rows("Functions");
  expect(functions.some((row) => /getUser/.test(row))).toBe(true);
  await show("health");
  await page.getByText("circuit_breaker", { exact: true }).waitFor();
  await show("alerts");
  await page.getByText("circuit_breaker_open", { exact: true }).waitFor();
  // They are listed for a minute after a report.
  await fleet.report();
  await until(async () => (await rows("Alerts")).filter((row) => row.includes("hit_rate_low")).length === 3, {
    what: "the alert of each process",
  });
  await show("settings");
  await until(async () => (await rows("Settings")).some((row) => row.startsWith("key_prefix")), {
    what: "the settings",
  });
  await page.getByText("answered").waitFor();
});

test("a store that freezes is said, and the page recovers", { timeout: 120_000 }, async () => {
  // A short deadline, so that it is noticed soon.
  const cache = new XCache({ ...fleet.config, enableMetrics: false, operationTimeout: 1 });
  onTestFinished(() => cache.disconnect());
  const board = await serveLocally({ cache, port: 0, values: false, writes: false, onRequest: () => {} });
  onTestFinished(() => board.close());
  await page.goto(board.url);
  await show("overview");
  fleet.server.freeze();
  await page.getByRole("alert").waitFor({ timeout: 60_000 });
  expect(await page.getByRole("alert").innerText()).toMatch(/not current: .*Trying again/);
  fleet.server.thaw();
  await page.getByRole("alert").waitFor({ state: "detached", timeout: 60_000 });
  // Nothing but what the page says itself has gone wrong.
  expect(complaints).toEqual([]);
});

test("a foreign token shows nothing", async () => {
  const stranger = await browser.context.newPage();
  await stranger.goto(fleet.board.url.replace(/#.*/, "#token=wrong"));
  await stranger.getByText(/not allowed/).waitFor();
  expect(await stranger.locator(".kpis").count()).toBe(0);
  await stranger.close();
});
