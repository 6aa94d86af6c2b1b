// A Redis for one measurement: on a free loopback port, nothing kept on disk, ended by its id with this process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as after } from "node:timers/promises";
import { openClient } from "./resp-client.mjs";

const ATTEMPTS = 5;
const START_MS = 10_000;
const POLL_MS = 10;

/** The same variable as for the tests; default: the program on the PATH. */
export const REDIS_SERVER = process.env.XCACHE_TEST_REDIS_SERVER || "redis-server";

/** The server's `url` and `port`, and `command(...)` on a connection that no library uses. */
export async function startServer() {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const child = await spawnServer(port);
    const client = await firstClient(child, port);
    if (client !== undefined) return { url: `redis://127.0.0.1:${port}/0`, port, command: client.command };
    child.kill("SIGKILL");
    if (attempt === ATTEMPTS) throw new Error(`${REDIS_SERVER} did not start in ${ATTEMPTS} attempts`);
  }
}

async function spawnServer(port) {
  const settings = { port, bind: "127.0.0.1", dir: tmpdir(), save: "", appendonly: "no", daemonize: "no" };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(REDIS_SERVER, args, { stdio: "ignore" });
  await Promise.race([once(child, "spawn"), once(child, "error").then(([error]) => Promise.reject(error))]);
  process.on("exit", () => child.kill("SIGKILL"));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  return child;
}

/** A client of this very process; undefined when it ended, or another server has taken the port. */
async function firstClient(child, port) {
  const until = performance.now() + START_MS;
  while (child.exitCode === null && performance.now() < until) {
    const client = await openClient(port).catch(() => undefined);
    const info = await client?.command("INFO", "server");
    if (info?.includes(`process_id:${child.pid}\r\n`)) return client;
    client?.end();
    await after(POLL_MS);
  }
  return undefined;
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
