// A memcached for one measurement: on a free loopback port, ended by its id with this process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as after } from "node:timers/promises";

const ATTEMPTS = 5;
const START_MS = 10_000;
const POLL_MS = 10;

/** The same variable as for the tests; default: the program on the PATH. */
export const MEMCACHED = process.env.XCACHE_TEST_MEMCACHED || "memcached";

/** The server's `url` and `port`. */
export async function startServer() {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const child = await spawnServer(port);
    if (await isUp(child, port)) return { url: `memcached://127.0.0.1:${port}`, port };
    child.kill("SIGKILL");
    if (attempt === ATTEMPTS) throw new Error(`${MEMCACHED} did not start in ${ATTEMPTS} attempts`);
  }
}

async function spawnServer(port) {
  const asRoot = process.getuid?.() === 0 ? ["-u", "root"] : [];
  const args = ["-l", "127.0.0.1", "-p", String(port), "-U", "0", "-m", "256", ...asRoot];
  const child = spawn(MEMCACHED, args, { stdio: "ignore" });
  await Promise.race([once(child, "spawn"), once(child, "error").then(([error]) => Promise.reject(error))]);
  process.on("exit", () => child.kill("SIGKILL"));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  return child;
}

/** Whether this very process answers; another server may have taken the port. */
async function isUp(child, port) {
  const until = performance.now() + START_MS;
  while (child.exitCode === null && performance.now() < until) {
    const reply = await statistics(port).catch(() => "");
    if (reply.includes(`STAT pid ${child.pid}\r\n`)) return true;
    await after(POLL_MS);
  }
  return false;
}

async function statistics(port) {
  const socket = connect({ host: "127.0.0.1", port }).setEncoding("latin1");
  let reply = "";
  socket.write("stats\r\nquit\r\n");
  for await (const text of socket) reply += text;
  return reply;
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
