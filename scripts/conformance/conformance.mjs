// `npm run conformance [-- --suite <folder>] [--id <case>] [--json]`: runs the public HTTP cache tests against a proxy made of our
// middleware, prints how many cases passed and writes it into docs/reference/http-conformance.md. The folder holds a checkout of
// http-tests/cache-tests with its dependencies; default: the npm package, which is older.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { createRequire } from "node:module";
import { createServer as createTcpServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { writePage } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Cases that run side by side; most of each is a pause of three seconds. */
const AT_ONCE = 100;

/**
 * What the npm release 0.4.5 expects of these is not what the RFCs say; the suite itself has changed since. An invalid or repeated Age
 * is ignored or its first value used (RFC 9111, 5.1), and a 304 updates all fields but those of the body's framing (RFC 9111, 3.2).
 */
const SUPERSEDED = new Set([
  "age-parse-nonnumeric",
  "age-parse-negative",
  "age-parse-float",
  "age-parse-prefix-twoline",
  "age-parse-dup-0",
  "age-parse-dup-0-twoline",
  "age-parse-dup-old",
  "age-parse-parameter",
  "age-parse-numeric-parameter",
  "304-etag-update-response-Content-MD5",
  "304-etag-update-response-ETag",
]);

/**
 * @typedef {{ id: string, kind?: string, depends_on?: string[] }} Case
 * @typedef {"passed" | "failed" | "setup" | "dependency" | "harness" | "superseded"} Result
 */

/** A port that nobody listens on. */
async function freePort() {
  const server = createTcpServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  await new Promise((done) => server.close(done));
  return port;
}

/**
 * A handler that asks the origin, as a reverse proxy does.
 * @param {number} originPort
 * @returns {import("node:http").RequestListener}
 */
export function proxyTo(originPort) {
  return (request, response) => {
    const { method, url, rawHeaders } = request;
    const upstream = httpRequest({
      port: originPort,
      host: "127.0.0.1",
      method,
      path: url,
      headers: rawHeaders,
      // A connection that is used again may just be closed by the other side.
      agent: false,
    });
    upstream.on("information", ({ statusCode, headers }) => {
      if (statusCode === 102) response.writeProcessing();
      if (statusCode === 103) response.writeEarlyHints(/** @type {Record<string, string>} */ (headers));
    });
    /** @type {import("node:http").IncomingMessage | undefined} */
    let received;
    upstream.on("response", (answer) => {
      received = answer;
      const own = answer.rawHeaders.filter((_, at) => !isHop(answer.rawHeaders[at - (at % 2)] ?? ""));
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, own);
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    upstream.on("error", () => {
      // Whatever comes after a whole response is not part of it.
      if (received?.complete) return;
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
    request.pipe(upstream);
  };
}

/** @param {string} name */
const isHop = (name) => ["keep-alive", "transfer-encoding"].includes(name.toLowerCase());

let runs = 0;

/** @param {string} folder */
async function loadSuite(folder) {
  const isNew = existsSync(join(folder, "test-engine"));
  const engine = isNew ? join(folder, "test-engine") : folder;
  /** @param {string} path @param {string} [query] */
  const load = (path, query = "") => import(pathToFileURL(path).href + query);
  // Its runner remembers the cases of an earlier run, would run them once more and refuse their second result.
  const { runTests, getResults } = await load(join(engine, "client/runner.mjs"), `?run=${++runs}`);
  const { testResults } = await load(join(engine, "client/test.mjs"));
  const { default: suites } = await load(join(folder, "tests/index.mjs"));
  return {
    /** @type {{ name: string, tests: Case[] }[]} */
    suites,
    server: join(engine, "server/server.mjs"),
    isOld: !isNew,
    getResults,
    /** @param {string} id */
    forget: (id) => delete testResults[id],
    /** @param {unknown} tests @param {string} base */
    run: async (tests, base) => {
      if (isNew) return runTests(tests, false, base, AT_ONCE);
      // The release brings its own fetch: Node's would add directives of its own to the requests.
      const { default: fetch } = await load(
        createRequire(join(folder, "package.json")).resolve("node-fetch"),
      );
      return runTests(tests, fetch, false, base, AT_ONCE);
    },
  };
}

/** @param {string} folder @param {string} program @param {number} port */
async function startOrigin(folder, program, port) {
  const child = spawn(process.execPath, ["--no-warnings", program], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      npm_config_protocol: "http",
      npm_config_port: String(port),
      npm_config_pidfile: "/dev/null",
    },
  });
  await new Promise((done, failed) => {
    child.stdout.once("data", done);
    child.once("exit", (code) => failed(new Error(`the suite's server ended with code ${code}`)));
  });
  child.stdout.resume();
  return child;
}

/**
 * As the suite counts: a case whose setup or dependency did not hold says nothing about the cache.
 * @param {Map<string, Case>} cases
 * @param {string} id
 * @param {Record<string, true | [string, string]>} results
 * @param {boolean} isOld
 * @returns {Result | undefined}
 */
function judge(cases, id, results, isOld) {
  const result = results[id];
  if (result === undefined) return undefined;
  if (isOld && result !== true && SUPERSEDED.has(id)) return "superseded";
  for (const needed of cases.get(id)?.depends_on ?? []) {
    if (judge(cases, needed, results, isOld) !== "passed") return "dependency";
  }
  if (result === true) return "passed";
  if (result[0] === "Setup") return "setup";
  return result[0] === "AbortError" ? "harness" : "failed";
}

/**
 * Runs the suite in `folder` against `listener`, made for a port where the suite's server listens.
 * @param {string} folder
 * @param {(originPort: number) => import("node:http").RequestListener} listen
 * @param {readonly string[]} [only] ids of the cases to run; default: all
 */
export async function runConformance(folder, listen, only) {
  const suite = await loadSuite(folder);
  const originPort = await freePort();
  const origin = await startOrigin(folder, suite.server, originPort);
  const proxy = createServer(listen(originPort));
  await new Promise((done) => proxy.listen(0, "127.0.0.1", () => done(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (proxy.address());
  try {
    const tests = suite.suites.map(({ tests: list, ...rest }) => ({
      ...rest,
      tests: only === undefined ? list : list.filter(({ id }) => only.includes(id)),
    }));
    for (const { tests: list } of tests) for (const { id } of list) suite.forget(id);
    await suite.run(tests, `http://127.0.0.1:${port}`);
    const results = suite.getResults();
    const cases = new Map(suite.suites.flatMap(({ tests: list }) => list.map((test) => [test.id, test])));
    return suite.suites.flatMap(({ name: group, tests: list }) =>
      list.flatMap(({ id, kind = "required" }) => {
        const result = judge(cases, id, results, suite.isOld);
        const why = Array.isArray(results[id]) ? results[id][1] : "";
        return result === undefined ? [] : [{ id, group, kind, result, why }];
      }),
    );
  } finally {
    proxy.closeAllConnections();
    proxy.close();
    origin.kill();
  }
}

/** @param {{ kind: string, result: Result }[]} outcome */
export function countOutcome(outcome) {
  return ["required", "optimal", "check"].map((kind) => {
    const of = outcome.filter((item) => item.kind === kind);
    /** @param {Result} result */
    const count = (result) => of.filter((item) => item.result === result).length;
    return {
      kind,
      cases: of.length,
      passed: count("passed"),
      failed: count("failed"),
      "not applicable": of.length - count("passed") - count("failed"),
    };
  });
}

/**
 * Which suite it is, for people.
 * @param {string} folder
 */
function suiteName(folder) {
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (!existsSync(join(folder, "test-engine"))) return `The release ${version} on npm`;
  const commit = execFileSync("git", ["-C", folder, "log", "-1", "--format=%h of %cs"], { encoding: "utf8" });
  return `The repository at ${commit.trim()}`;
}

function installedSuite() {
  return dirname(createRequire(import.meta.url).resolve("http-cache-tests/package.json"));
}

async function main() {
  const { values } = parseArgs({
    options: {
      suite: { type: "string" },
      id: { type: "string" },
      json: { type: "boolean" },
      dist: { type: "string" },
    },
  });
  const dist = resolve(values.dist ?? join(ROOT, "dist"));
  const extension = existsSync(join(dist, "index.mjs")) ? "mjs" : "js";
  const { XCache, MemoryBackend } = await import(pathToFileURL(join(dist, `index.${extension}`)).href);
  const { httpCache } = await import(pathToFileURL(join(dist, `web/node.${extension}`)).href);
  const cache = new XCache({ backend: new MemoryBackend() });
  // How a proxy in front of an unknown origin is configured: store what the origin allows, and obey the client. One of the
  // suite's responses has no end but that of its connection, which stays open for seconds.
  const wrap = httpCache({ cache, ttl: 0, cacheNonOk: true, clientDirectives: true, streamAfter: 10 });
  const suite = resolve(values.suite ?? installedSuite());
  const outcome = await runConformance(
    suite,
    (originPort) => wrap(proxyTo(originPort)),
    values.id === undefined ? undefined : [values.id],
  );
  await cache.disconnect();
  if (values.json) {
    console.log(JSON.stringify(Object.fromEntries(outcome.map(({ id, result }) => [id, result])), null, 1));
    return;
  }
  for (const { id, kind, result, why } of outcome) {
    if (kind !== "check" && result !== "passed") console.log(`${kind} ${result} ${id}: ${why}`);
  }
  console.table(countOutcome(outcome));
  if (values.id !== undefined) return;
  const unexplained = writePage(suiteName(suite), existsSync(join(suite, "test-engine")), outcome);
  if (unexplained.length === 0) return;
  console.error(`Not passed, and nobody has said why that is right: ${unexplained.join(", ")}`);
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
