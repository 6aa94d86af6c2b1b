// `npm run test:site`: walks through the built site in Chromium. Every link leads somewhere, nothing is printed to the console,
// search finds the words of the field, no page is wider than a phone, and the main pages look as in the kept pictures
// (`npm run test:site -- --update` keeps new ones). Screenshots go to .cache/site.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { checkLooks } from "./check-looks.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SITE = join(ROOT, "docs/.vitepress/dist");
const SHOTS = join(ROOT, ".cache/site");
const CHROMIUM = process.env.XCACHE_TEST_CHROMIUM ?? "/usr/bin/chromium";

const TYPES = new Map([
  [".html", "text/html"],
  [".js", "text/javascript"],
  [".css", "text/css"],
  [".svg", "image/svg+xml"],
  [".json", "application/json"],
  [".txt", "text/plain"],
  [".woff2", "font/woff2"],
]);

/** What people search for, and the page that must be among the results. */
const SEARCHES = [
  ["stampede", "/guide/loading"],
  ["SWR", "/guide/"],
  ["thundering herd", "/guide/"],
  ["L1", "/guide/near-cache"],
  ["dogpile", "/guide/"],
];

/** Looked at by people; the rest is looked at by this program only. */
const LOOKED_AT = [
  "/index.html",
  "/guide/loading.html",
  "/guide/benchmarks.html",
  "/api/classes/index.XCache.html",
];

const VIEWS = [
  { name: "desktop", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "phone", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
];

if (!existsSync(join(SITE, "api/index.html"))) {
  console.error("There is no built site: run `npm run docs` first.");
  process.exit(2);
}
if (!existsSync(CHROMIUM)) {
  console.error(
    `${CHROMIUM} is not there: \`apt-get install chromium\`, or name another in XCACHE_TEST_CHROMIUM.`,
  );
  process.exit(2);
}
mkdirSync(SHOTS, { recursive: true });

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://site").pathname));
  const file = join(SITE, path.endsWith("/") ? `${path}index.html` : path);
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": TYPES.get(extname(file)) ?? "application/octet-stream" });
  response.end(readFileSync(file));
});
await /** @type {Promise<void>} */ (new Promise((resolve) => server.listen(0, "127.0.0.1", resolve)));
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const origin = `http://127.0.0.1:${port}`;

/** @type {string[]} */
const problems = [];
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

/** @param {Partial<(typeof VIEWS)[number]>} view */
async function open({ viewport, colorScheme } = VIEWS[0] ?? {}) {
  const context = await browser.newContext({
    ...(viewport && { viewport }),
    colorScheme: colorScheme === "dark" ? "dark" : "light",
  });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on("response", (response) => {
    if (response.status() >= 400) problems.push(`${page.url()}: ${response.status()} ${response.url()}`);
  });
  return page;
}

/** Every page that VitePress made. The pages of typedoc are reached by links, and checked as files. */
const pages = readdirSync(SITE, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".html") && !path.startsWith("api/") && path !== "404.html")
  .map((path) => `/${path}`);

/** Links whose file, or whose heading, is not there. @param {string} path @param {readonly string[]} links */
function broken(path, links) {
  return links.filter((link) => {
    const { pathname, hash, origin: target } = new URL(link);
    if (target !== origin) return false;
    const file = join(SITE, decodeURIComponent(pathname.endsWith("/") ? `${pathname}index.html` : pathname));
    if (!existsSync(file)) return true;
    const id = decodeURIComponent(hash.slice(1));
    return id !== "" && pathname !== path && !readFileSync(file, "utf8").includes(`id="${id}"`);
  });
}

const phone = await open(VIEWS[1]);
for (const path of pages) {
  await phone.goto(`${origin}${path}`, { waitUntil: "load" });
  /** @type {string[]} */
  const links = await phone.evaluate("Array.from(document.links, (link) => link.href)");
  for (const link of new Set(broken(path, links))) problems.push(`${path}: no ${link}`);
  /** @type {number} */
  const spill = await phone.evaluate("document.documentElement.scrollWidth - innerWidth");
  if (spill > 0) problems.push(`${path}: ${spill} pixels wider than a phone`);
}
await phone.context().close();

for (const view of VIEWS) {
  const page = await open(view);
  for (const path of LOOKED_AT) {
    await page.goto(`${origin}${path}`, { waitUntil: "networkidle" });
    const shot = `${path.slice(1).replaceAll("/", "-").replace(".html", "")}-${view.name}.png`;
    await page.screenshot({
      path: join(SHOTS, shot),
      fullPage: view.name === "phone" ? false : path === "/index.html",
    });
  }
  await page.context().close();
}

const page = await open();
await page.goto(`${origin}/index.html`, { waitUntil: "networkidle" });
for (const [word = "", expected = ""] of SEARCHES) {
  await page.click(".VPNavBarSearch button");
  await page.fill(".VPLocalSearchBox input", word);
  await page.waitForSelector(".VPLocalSearchBox .result");
  /** @type {string[]} */
  const found = await page.evaluate(
    "Array.from(document.querySelectorAll('.VPLocalSearchBox .result'), (link) => new URL(link.href).pathname)",
  );
  if (!found.some((path) => path.startsWith(expected)))
    problems.push(`search for ${word}: ${found.join(" ")}`);
  await page.keyboard.press("Escape");
}
problems.push(...(await checkLooks(browser, origin, process.argv.includes("--update"))));
await browser.close();
server.close();

if (!readFileSync(join(SITE, "llms.txt"), "utf8").startsWith("# xcache"))
  problems.push("llms.txt is not there");
for (const problem of new Set(problems)) console.error(problem);
console.log(`${pages.length} pages, ${new Set(problems).size} problems; screenshots in .cache/site`);
process.exitCode = problems.length === 0 ? 0 : 1;
