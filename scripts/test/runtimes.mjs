// `npm run test:runtimes [-- bun]`: runs the contract suite over memory, Redis and the near tier, the fetch and Hono adapters and
// `cached` on Node, Bun and Deno; prints a table. The programs come from npm, into .cache/.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "../build/build.mjs";
import { loadSource } from "./load-source.mjs";
import { programFromNpm } from "./npm-program.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SUITE = join(ROOT, "test/runtimes/suite.mjs");
const IS_ARM = process.arch === "arm64";

/** @type {Readonly<Record<string, () => readonly string[]>>} */
const RUNTIMES = {
  node: () => [process.execPath],
  bun: () => [programFromNpm(`@oven/bun-linux-${IS_ARM ? "aarch64" : "x64"}@1`, "bin/bun"), "run"],
  deno: () => [
    programFromNpm(`@deno/linux-${IS_ARM ? "arm64" : "x64"}-glibc@2`, "deno"),
    ...["run", "--allow-all", "--no-check", "--node-modules-dir=manual"],
  ],
};

/** @typedef {Record<string, { passed: number, failed: number }>} Counts */

/**
 * @param {readonly string[]} command
 * @param {string} redisUrl
 */
async function runSuite([program = "", ...args], redisUrl) {
  const child = spawn(program, [...args, SUITE, redisUrl], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_NO_WARNINGS: "1", DENO_NO_UPDATE_CHECK: "1" },
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  const [code] = await once(child, "close");
  const lines = said.trim().split("\n");
  const last = lines.pop() ?? "";
  if (!last.startsWith("{")) throw new Error(`it ended with ${code} before the last case:\n${said}`);
  for (const line of lines) console.log(line);
  return /** @type {Counts} */ (JSON.parse(last));
}

/** @param {Counts} counts */
const describe = (counts) =>
  Object.entries(counts)
    .map(([group, { passed, failed }]) => `${group} ${passed}${failed === 0 ? "" : ` (${failed} FAILED)`}`)
    .join(", ");

const asked = process.argv.slice(2);
/** @param {string} name */
const isAsked = (name) => asked.length === 0 || asked.includes(name);
const builtWith = buildIfStale();
if (builtWith !== 0) process.exit(builtWith);

/** @typedef {import("../../test/support/servers.global.ts")} Servers */
/** @typedef {import("../../test/support/redis.ts")} Redis */
const { setup, teardown } = /** @type {Servers} */ (await loadSource("test/support/servers.global.ts"));
const { startRedis } = /** @type {Redis} */ (await loadSource("test/support/redis.ts"));
setup();
let failures = 0;
try {
  const redis = await startRedis();
  for (const [name, command] of Object.entries(RUNTIMES).filter(([name]) => isAsked(name))) {
    const began = performance.now();
    /** @type {string} */
    let detail;
    let isOk = false;
    try {
      const counts = await runSuite(command(), redis.url);
      isOk = Object.values(counts).every(({ failed }) => failed === 0);
      detail = describe(counts);
    } catch (error) {
      detail = error instanceof Error ? error.message : String(error);
    }
    if (!isOk) failures++;
    const seconds = ((performance.now() - began) / 1000).toFixed(0).padStart(3);
    console.log(`${isOk ? "ok     " : "FAILED "} ${name.padEnd(8)} ${seconds} s  ${detail}`);
  }
  await redis.stop();
} finally {
  teardown();
}
process.exitCode = failures === 0 ? 0 : 1;
