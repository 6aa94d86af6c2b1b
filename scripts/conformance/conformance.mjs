// `npm run conformance [-- --suite <folder>] [--adapter <names>] [--id <cases>] [--json]`: runs the public HTTP cache tests against a
// proxy made of each adapter, or of some, prints how many cases passed and, after a whole run, writes it into
// docs/reference/http-conformance.md. `--json` prints the results of the first adapter named. The folder holds a checkout of http-tests/cache-tests with its dependencies; default: the npm
// package, which is older.
import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer as createTcpServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import { ADAPTERS } from "./adapters.mjs";
import { writePage } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Cases that run concurrently; most of each is a pause of three seconds. */
const AT_ONCE = 100;
/** Cases that were too slow for the suite's client run again, with fewer at a time. */
const AGAIN_AT_ONCE = 10;

/**
 * What the npm release 0.4.5 expects of these differs from the RFCs; the suite itself has changed since. An invalid or repeated Age
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
 * @typedef {{ id: string, kind?: string, depends_on?: string[], requests: { pause_after?: boolean }[] }} Case
 * @typedef {"passed" | "failed" | "setup" | "dependency" | "harness" | "superseded" | "no interim"} Result
 */

/** A port without a listener. */
async function freePort() {
  const server = createTcpServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  await new Promise((done) => server.close(done));
  return port;
}

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
    /** @param {unknown} tests @param {string} base @param {number} atOnce */
    run: async (tests, base, atOnce) => {
      if (isNew) return runTests(tests, false, base, atOnce);
      // The release brings its own fetch: Node's would add directives to the requests.
      const { default: fetch } = await load(
        createRequire(join(folder, "package.json")).resolve("node-fetch"),
      );
      return runTests(tests, fetch, false, base, atOnce);
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
  const end = () => child.kill();
  process.once("exit", end);
  child.once("exit", () => process.off("exit", end));
  await new Promise((done, failed) => {
    child.stdout.once("data", done);
    child.once("exit", (code) => failed(new Error(`the suite's server ended with code ${code}`)));
  });
  child.stdout.resume();
  return child;
}

/**
 * As the suite counts: a case whose setup or dependency failed proves nothing about the cache.
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
 * Runs the suite in `folder` against the server that `open` creates for a port where the suite's own server listens.
 * @param {string} folder
 * @param {(originPort: number) => import("node:http").Server | Promise<import("node:http").Server>} open
 * @param {readonly string[]} [only] ids of the cases to run; default: all
 */
export async function runConformance(folder, open, only) {
  const suite = await loadSuite(folder);
  const originPort = await freePort();
  const origin = await startOrigin(folder, suite.server, originPort);
  const proxy = await open(originPort);
  await new Promise((done) => proxy.listen(0, "127.0.0.1", () => done(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (proxy.address());
  try {
    /** @param {(id: string) => boolean} isChosen @param {number} atOnce */
    const run = async (isChosen, atOnce) => {
      const tests = suite.suites.map(({ tests: list, ...rest }) => ({
        ...rest,
        tests: list.filter(({ id }) => isChosen(id)),
      }));
      for (const { tests: list } of tests) for (const { id } of list) suite.forget(id);
      await suite.run(tests, `http://127.0.0.1:${port}`, atOnce);
    };
    await run((id) => only === undefined || only.includes(id), AT_ONCE);
    const slow = Object.entries(suite.getResults()).filter(([, result]) => result[0] === "AbortError");
    if (slow.length > 0) await run((id) => slow.some(([slowId]) => slowId === id), AGAIN_AT_ONCE);
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

/**
 * The cases that never wait, nor depend on one that does.
 * @param {string} folder
 */
export async function quickCases(folder) {
  const { suites } = await loadSuite(folder);
  const cases = new Map(suites.flatMap(({ tests }) => tests.map((test) => [test.id, test])));
  /** @param {Case} test @returns {boolean} */
  const isQuick = ({ requests, depends_on: needed = [] }) =>
    requests.every(({ pause_after: pause }) => !pause) &&
    needed.every((id) => isQuick(/** @type {Case} */ (cases.get(id))));
  return [...cases.values()].filter(isQuick).map(({ id }) => id);
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
 * A readable name of the suite.
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

/**
 * How a proxy in front of an unknown origin is configured: store what the origin allows, and obey the client. One of the suite's
 * responses has no end but that of its connection, which stays open for seconds.
 */
export const OPTIONS = { ttl: 0, cacheNonOk: true, clientDirectives: true, streamAfter: 10 };

/** @param {string} folder of the compiled library */
async function loadLibrary(folder) {
  const extension = existsSync(join(folder, "index.mjs")) ? "mjs" : "js";
  /** @param {string} name */
  const load = (name) => import(pathToFileURL(join(folder, `${name}.${extension}`)).href);
  const { XCache, MemoryBackend } = await load("index");
  return {
    openCache: () => new XCache({ backend: new MemoryBackend() }),
    /** @param {string} module */
    httpCacheOf: async (module) => (await load(`web/${module}`)).httpCache,
  };
}

async function main() {
  const { values } = parseArgs({
    options: {
      adapter: { type: "string" },
      suite: { type: "string" },
      id: { type: "string" },
      json: { type: "boolean" },
      dist: { type: "string" },
    },
  });
  const dist = resolve(values.dist ?? join(ROOT, "dist"));
  const suite = resolve(values.suite ?? installedSuite());
  const names = values.adapter?.split(",") ?? Object.keys(ADAPTERS);
  const unknown = names.find((name) => !Object.hasOwn(ADAPTERS, name));
  if (unknown !== undefined)
    throw new Error(`--adapter must be one of ${Object.keys(ADAPTERS).join(", ")}; got ${unknown}`);
  if (values.json) {
    console.log(JSON.stringify(await runAdapter(names[0] ?? "node", dist, suite, values.id?.split(","))));
    return;
  }
  /** @type {Record<string, Awaited<ReturnType<typeof runConformance>>>} */
  const outcomes = {};
  for (const name of names) {
    // One process each: the suite computes the dates of its cases when it is loaded.
    const args = ["--adapter", name, "--suite", suite, "--dist", dist, "--json"];
    if (values.id !== undefined) args.push("--id", values.id);
    const program = fileURLToPath(import.meta.url);
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
      maxBuffer: 2 ** 26,
    });
    const outcome = JSON.parse(stdout);
    outcomes[name] = outcome;
    for (const { id, kind, result, why } of outcome) {
      if (kind !== "check" && result !== "passed") console.log(`${name} ${kind} ${result} ${id}: ${why}`);
    }
    console.log(name);
    console.table(countOutcome(outcome));
  }
  if (values.id !== undefined || values.adapter !== undefined) return;
  const unexplained = writePage(suiteName(suite), existsSync(join(suite, "test-engine")), outcomes);
  if (unexplained.length === 0) return;
  console.error(`Not passed, and nobody has said why that is right: ${unexplained.join(", ")}`);
  process.exitCode = 1;
}

/**
 * Runs the cases on one adapter.
 * @param {string} name
 * @param {string} dist
 * @param {string} suite
 * @param {readonly string[]} [only]
 */
async function runAdapter(name, dist, suite, only) {
  const { openCache, httpCacheOf } = await loadLibrary(dist);
  const { module, open, hasNoInterim } = /** @type {import("./adapters.mjs").Adapter} */ (ADAPTERS[name]);
  const cache = openCache();
  const httpCache = await httpCacheOf(module);
  const outcome = await runConformance(
    suite,
    (originPort) => open(httpCache, { cache, ...OPTIONS }, originPort),
    only,
  );
  await cache.disconnect();
  return outcome.map((item) =>
    hasNoInterim && item.id.startsWith("interim-") && item.result === "failed"
      ? { ...item, result: /** @type {const} */ ("no interim") }
      : item,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
