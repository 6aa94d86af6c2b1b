// Many callers in four processes, one cold key: how often is it loaded, and how long do they wait?
import { fork } from "node:child_process";
import { on, once } from "node:events";
import { setTimeout as after } from "node:timers/promises";
import { startServer } from "../kv/server.mjs";
import { median } from "../timing.mjs";

const PROCESSES = 4;
const CALLERS = 250;
const LOAD_MS = 50;
const REPEATS = 11;
/** The key is cold, the code is not. */
const WARM_UPS = 20;

export const scenario = {
  title: "stampede: 4 processes with 250 concurrent getOrSet each on one cold key, 50 ms load",
  note: "Milliseconds from telling the processes to begin until the last of them has all its values.",
  unit: "ms",
  extra: { loads: "loads" },
  libraries: [
    "kv/xcache",
    "kv/bentocache",
    "kv/cacheable",
    "kv/cache-manager",
    "kv/layered-loader",
    "kv/async-cache-dedupe",
  ],
  target: { text: "1 load, <= 80 ms", reached: ({ figure, loads }) => figure <= 80 && loads === 1 },

  /** The processes run this very measurement again, and detect that a parent talks to them. */
  measure: (open) => (process.send === undefined ? lead() : takePart(open)),
};

async function lead() {
  const server = await startServer();
  const members = Array.from({ length: PROCESSES }, () => fork(process.argv[1], process.argv.slice(2)));
  process.on("exit", () => {
    for (const member of members) member.kill();
  });
  const ended = Promise.race(members.map((member) => once(member, "exit"))).then(() => {
    throw new Error("a process of the stampede ended early");
  });
  const tell = (message) => Promise.race([Promise.all(members.map((member) => ask(member, message))), ended]);
  await tell({ url: server.url });
  const times = [];
  let loads = 0;
  for (let repeat = -WARM_UPS; repeat < REPEATS; repeat++) {
    const started = performance.now();
    const counts = await tell({ key: `cold:${repeat}`, loadMs: repeat < 0 ? 1 : LOAD_MS });
    if (repeat < 0) continue;
    times.push(performance.now() - started);
    loads += counts.reduce((sum, count) => sum + count);
  }
  return { figure: median(times), loads: loads / REPEATS };
}

async function ask(member, message) {
  member.send(message);
  const [answer] = await once(member, "message");
  return answer;
}

/** Answers each message with the number of loads it took here. The listener keeps the process alive, as a server's socket does. */
async function takePart(open) {
  let loads = 0;
  let loadMs = 0;
  const load = async (key) => {
    loads++;
    await after(loadMs);
    return { key };
  };
  let driver;
  for await (const [order] of on(process, "message")) {
    if (order.url !== undefined) driver = await open({ url: order.url, capacity: 1_000, load });
    else {
      ({ loadMs } = order);
      await askAll(driver, order.key);
    }
    process.send(loads);
    loads = 0;
  }
}

async function askAll(driver, key) {
  const values = await Promise.all(Array.from({ length: CALLERS }, () => driver.getOrSet(key)));
  if (values.some((value) => value.key !== key)) throw new Error("a caller got another key's value");
}
