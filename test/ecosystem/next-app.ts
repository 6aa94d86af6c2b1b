// A small Next application in a temporary folder: built once, served by as many processes as a test starts.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { reservePort } from "../support/port.ts";
import { recordServer } from "../support/run-folder.ts";
import { until } from "../support/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const NEXT = join(ROOT, "node_modules/next/dist/bin/next");

const layout = `
export default function Layout({ children }) {
  return <html><body>{children}</body></html>;
}`;

/** Data of \`fetch\` under a tag, in a page that is rendered on its first request. */
const itemPage = (upstream: string): string => `
export const revalidate = 3600;
export const generateStaticParams = () => [];
export default async function Page({ params }) {
  const { slug } = await params;
  const answer = await fetch("${upstream}/fetch/" + slug, { cache: "force-cache", next: { tags: ["data-" + slug] } });
  return <p>{"[" + slug + " " + (await answer.text()) + "]"}</p>;
}`;

const usedRoute = (upstream: string): string => `
import { cacheLife, cacheTag } from "next/cache";
async function remembered(slug) {
  "use cache";
  cacheTag("used-" + slug);
  cacheLife({ stale: 300, revalidate: 3600, expire: 7200 });
  return (await fetch("${upstream}/use/" + slug, { cache: "no-store" })).text();
}
export async function GET(request, { params }) {
  const { slug } = await params;
  return new Response(await remembered(slug));
}`;

const fileRoute = (upstream: string): string => `
export const dynamic = "force-static";
export const revalidate = 3600;
export const generateStaticParams = () => [];
export async function GET(request, { params }) {
  const { slug } = await params;
  const answer = await fetch("${upstream}/file/" + slug, { cache: "no-store" });
  const bytes = new Uint8Array([0, 255, 128, 10, ...(new TextEncoder().encode(await answer.text()))]);
  return new Response(bytes, { headers: { "content-type": "application/octet-stream" } });
}`;

const revalidateRoute = `
import { revalidatePath, revalidateTag } from "next/cache";
export async function GET(request) {
  const { searchParams: asked } = new URL(request.url);
  if (asked.has("path")) revalidatePath(asked.get("path"));
  else revalidateTag(asked.get("tag"), asked.has("max") ? "max" : { expire: 0 });
  return new Response("revalidated");
}`;

const config = `
import { fileURLToPath } from "node:url";
const file = (name) => fileURLToPath(new URL(name, import.meta.url));
export default {
  cacheHandler: file("./cache-handler.mjs"),
  cacheHandlers: { default: file("./use-cache-handler.mjs") },
  cacheMaxMemorySize: 0,
  experimental: { useCache: true, cpus: 1, turbopackFileSystemCacheForBuild: false },
  turbopack: { root: ${JSON.stringify(ROOT)} },
};`;

/** What the application imports, as it is published. */
const library = ["index.js", "ecosystem/next.js"]
  .map((entry) => `export * from ${JSON.stringify(pathToFileURL(join(ROOT, "dist", entry)).href)};`)
  .join("\n");

const handler = (name: string, store: string): string => `
// Hidden from the tracing of deployment files, which would take half of the build time.
const { ${name}, XCache } = await import(/* turbopackIgnore: true */ "./xcache.mjs");
export default ${name}(new XCache({ kvUrl: ${JSON.stringify(store)} }));`;

export interface NextApp {
  /** One more server process; ends with the application. */
  start(): Promise<NextServer>;
  remove(): Promise<void>;
}

export interface NextServer {
  get(path: string, headers?: Record<string, string>): Promise<Response>;
}

/** Next depends on NODE_ENV, which vitest sets to "test". */
const env = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1" };

/** `upstream` serves the data that pages fetch, `store` is where they are cached. */
export async function buildNextApp(upstream: string, store: string): Promise<NextApp> {
  const parent = join(ROOT, ".cache");
  mkdirSync(parent, { recursive: true });
  // Inside the repository, so that the packages are found.
  const folder = mkdtempSync(join(parent, "next-app-"));
  const children: ChildProcess[] = [];
  const app: NextApp = {
    async start() {
      const { port, release } = await reservePort();
      const child = run(folder, ["start", "-p", String(port), "-H", "127.0.0.1"]);
      children.push(child);
      child.once("exit", release);
      const get: NextServer["get"] = (path, headers = {}) =>
        fetch(`http://127.0.0.1:${port}${path}`, { headers });
      await until(async () => (await get("/ready")).status === 404, {
        what: "a server of Next answers",
        stopWhen: () => child.exitCode !== null,
      });
      return { get };
    },
    async remove() {
      for (const child of children) {
        const ended = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
        child.kill("SIGKILL");
        await ended;
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  try {
    writeAll(folder, {
      "package.json": "{}",
      "xcache.mjs": library,
      "next.config.mjs": config,
      "cache-handler.mjs": handler("nextCacheHandler", store),
      "use-cache-handler.mjs": handler("nextUseCacheHandler", store),
      "app/layout.js": layout,
      "app/items/[slug]/page.js": itemPage(upstream),
      "app/used/[slug]/route.js": usedRoute(upstream),
      "app/files/[slug]/route.js": fileRoute(upstream),
      "app/revalidate/route.js": revalidateRoute,
    });
    const output: string[] = [];
    const child = run(folder, ["build"], output);
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`next build failed:\n${output.join("")}`);
    return app;
  } catch (error) {
    await app.remove();
    throw error;
  }
}

function run(folder: string, args: readonly string[], output: string[] = []): ChildProcess {
  const child = spawn(process.execPath, [NEXT, ...args], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => output.push(text));
  }
  const strikeOff = recordServer(child.pid!);
  child.once("exit", strikeOff);
  return child;
}

function writeAll(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
