// `npm run churn -- --minutes 10 --keys 1000000 --near on --encryption on`: keeps two caches on one server busy with entries that come and
// go, and checks whether anything is left behind: heap, buffers, handles, listeners, keys of the server. Exit code 1 if so.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildIfStale } from "../build/build.mjs";

const WORK = fileURLToPath(new URL("work.mjs", import.meta.url));

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    keys: { type: "string", default: "1000000" },
    near: { type: "string", default: "off" },
    encryption: { type: "string", default: "off" },
  },
});

/**
 * An integer or fraction above 0.
 * @param {"minutes" | "keys"} name
 */
function amount(name) {
  const value = Number(options[name]);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new Error(`--${name} must be a number above 0, got ${JSON.stringify(options[name])}.`);
}

/** A port without a listener. */
async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

/**
 * Starts a server without persistence; the caller ends it.
 * @param {string} folder
 * @param {number} port
 */
function startServer(folder, port) {
  const program = process.env.XCACHE_TEST_REDIS_SERVER || "redis-server";
  const settings = { port: String(port), bind: "127.0.0.1", dir: folder, save: "", appendonly: "no" };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  return spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
}

async function main() {
  const [minutes, keys] = [amount("minutes"), Math.ceil(amount("keys"))];
  for (const name of /** @type {const} */ (["near", "encryption"])) {
    if (options[name] !== "on" && options[name] !== "off")
      throw new Error(`--${name} must be "on" or "off", got ${JSON.stringify(options[name])}.`);
  }
  if (buildIfStale() !== 0) return 1;
  const folder = mkdtempSync(join(tmpdir(), "xcache-churn-"));
  const port = await freePort();
  const server = startServer(folder, port);
  const serverEnd = once(server, "exit");
  try {
    const url = `redis://127.0.0.1:${port}/0`;
    const args = ["--expose-gc", WORK, url, String(minutes), String(keys), options.near, options.encryption];
    const work = spawn(process.execPath, args, { stdio: "inherit" });
    const end = () => work.kill("SIGTERM");
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.once(signal, end);
    const [code] = await Promise.race([once(work, "exit"), serverEnd.then(() => pause(1_000, [1]))]);
    work.kill("SIGKILL");
    return code ?? 1;
  } finally {
    server.kill("SIGKILL");
    await serverEnd;
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = await main();
