// Builds a small application of Next whose cached results are in xcache, and serves it from two processes.
//
// Next promises that `revalidateTag` with `{ expire: 0 }` (without a second argument in 15) expires at once. But a route handler
// only starts that: its response may arrive before the cache handlers have been called (`pendingWaitUntil` in Next). So
// the handlers of this application say when the store has acknowledged it, and from then on no old answer may come.
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { check, versionOf, works } from "./check.mjs";

const isOld = versionOf("next").startsWith("15.");
let answers = 0;
const told = new EventEmitter();
const upstream = createServer((request, response) => {
  if (request.url.startsWith("/acknowledged/")) told.emit(request.url);
  response.end(String(++answers));
});
upstream.listen(0, "127.0.0.1");
await once(upstream, "listening");
const origin = `http://127.0.0.1:${upstream.address().port}`;
const store = new URL(`file://${join(process.cwd(), "next-store")}`).href;
const handler = (name, saying) => `
import { XCache } from "xcache";
import { ${name} } from "xcache/ecosystem/next";
const own = ${name}(new XCache({ kvUrl: ${JSON.stringify(store)}, connectTimeout: 20, operationTimeout: 20 }));
const say = (tags) => Promise.all(tags.map((tag) => fetch("${origin}/acknowledged/${name}/" + tag)));
${saying}`;
const handlerClass = `
export default class extends own {
  async revalidateTag(tags, ...rest) {
    await super.revalidateTag(tags, ...rest);
    await say([tags].flat());
  }
}`;
const useHandler = `
export default {
  ...own,
  async updateTags(tags, ...rest) {
    await own.updateTags(tags, ...rest);
    await say(tags);
  },
  async expireTags(...tags) {
    await own.expireTags(...tags);
    await say(tags);
  },
};`;
const handlers = '{ default: file("./use-cache-handler.mjs") }';
const files = {
  "next.config.mjs": `
import { fileURLToPath } from "node:url";
const file = (name) => fileURLToPath(new URL(name, import.meta.url));
export default {
  cacheHandler: file("./cache-handler.mjs"),
  cacheMaxMemorySize: 0,
  ${isOld ? "" : `cacheHandlers: ${handlers},`}
  experimental: { useCache: true, cpus: 1, ${isOld ? `cacheHandlers: ${handlers}` : ""} },
  outputFileTracingRoot: process.cwd(),
  ${isOld ? "" : "turbopack: { root: process.cwd() },"}
};`,
  "cache-handler.mjs": handler("nextCacheHandler", handlerClass),
  "use-cache-handler.mjs": handler("nextUseCacheHandler", useHandler),
  "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;",
  "app/fetched/[id]/page.js": `
export const revalidate = 3600;
export const generateStaticParams = () => [];
export default async function Page() {
  const answer = await fetch("${origin}/fetched", { cache: "force-cache", next: { tags: ["fetched"] } });
  return <p>{"answer " + (await answer.text())}</p>;
}`,
  "app/used/[id]/route.js": `
import { ${isOld ? "unstable_cacheTag as cacheTag, unstable_cacheLife as cacheLife" : "cacheTag, cacheLife"} } from "next/cache";
async function remembered(id) {
  "use cache";
  cacheTag("used");
  cacheLife({ stale: 300, revalidate: 3600, expire: 7200 });
  return (await fetch("${origin}/used", { cache: "no-store" })).text();
}
export async function GET(request, { params }) {
  return new Response("answer " + (await remembered((await params).id)));
}`,
  "app/revalidate/[tag]/route.js": `
import { revalidateTag } from "next/cache";
export async function GET(request, { params }) {
  revalidateTag((await params).tag${isOld ? "" : ", { expire: 0 }"});
  return new Response("done");
}`,
};
for (const [name, text] of Object.entries(files)) {
  mkdirSync(dirname(name), { recursive: true });
  writeFileSync(name, text);
}
const program = join(dirname(createRequire(import.meta.url).resolve("next/package.json")), "dist/bin/next");
const env = { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" };
function run(...args) {
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
  return { child, said: () => said };
}
const build = run("build");
const [code] = await once(build.child, "exit");
if (code !== 0) throw new Error(`next build failed: ${build.said()}`);

async function serve() {
  const { child, said } = run("start", "-p", "0", "-H", "127.0.0.1");
  process.on("exit", () => child.kill("SIGKILL"));
  for (;;) {
    const port = /127\.0\.0\.1:(\d+)/.exec(said())?.[1];
    if (port !== undefined && /Ready/.test(said())) return `http://127.0.0.1:${port}`;
    if (child.exitCode !== null) throw new Error(`next start failed: ${said()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const servers = [await serve(), await serve()];
const read = async (at, path) => /answer (\d+)/.exec(await (await fetch(servers[at] + path)).text())?.[1];
for (const kind of ["fetched", "used"]) {
  const first = await read(0, `/${kind}/1`);
  check(await read(1, `/${kind}/1`), first, `${kind}: what the other process answers`);
  const acknowledged = Promise.all(
    ["nextCacheHandler", "nextUseCacheHandler"].map((name) => once(told, `/acknowledged/${name}/${kind}`)),
  );
  check(await (await fetch(`${servers[1]}/revalidate/${kind}`)).text(), "done", "revalidateTag");
  await acknowledged;
  const second = await read(0, `/${kind}/1`);
  check(second !== first && second !== undefined, true, `${kind}: a new answer after revalidateTag`);
}
works("next");
