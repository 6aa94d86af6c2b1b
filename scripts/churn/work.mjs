// The process that `npm run churn` observes: works on the store, and periodically reports what it holds.
// Arguments: address of the server, minutes, keys, "on" or "off" for the near tier and for encryption. Needs --expose-gc.
import { subscribe } from "node:diagnostics_channel";
import { setTimeout as pause } from "node:timers/promises";
import { growth, printRow, verdict } from "./report.mjs";
import { waitingTimers } from "./timers.mjs";

/** @typedef {import("./report.mjs").Sample} Sample */

/** @type {typeof import("../../src/index.ts")} */
const { XCache } = await import(new URL("../../dist/index.js", import.meta.url).href);

const [url = "", minutesText, keysText, near, encryption] = process.argv.slice(2);
const [minutes, keyCount] = [Number(minutesText), Number(keysText)];
const gc = globalThis.gc ?? (() => Promise.reject(new Error("Run node with --expose-gc.")));

const AT_ONCE = 64;
const TAGS = 1_000;
/** Keys that many callers want at the same time. */
const HOT_KEYS = 50;
const LONGEST_TTL = 15;
/** Stamps of tag groups and of the namespace, and the note about the server. */
const LASTING_RECORDS = 64 + 2;
/** The fleet's history keeps a record of every minute in which anything was counted, for the configured time. */
const mostMinutes = () => Math.floor(performance.now() / 60_000) + 2;
/** More changes than a process remembers. */
const REMEMBERED = 60_000;
const sliceMs = Math.min(10_000, (minutes * 60_000) / 12);

/** @type {Set<import("node:net").Socket>} */
const sockets = new Set();
subscribe("net.client.socket", (message) => {
  const { socket } = /** @type {{ socket: import("node:net").Socket }} */ (message);
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
});

const open = () =>
  new XCache({
    kvUrl: url,
    keyPrefix: "churn",
    nearCache: near === "on",
    ...(encryption === "on" && { encryption: { keys: { k: "c".repeat(64) }, use: "k" } }),
    operationTimeout: 30,
    circuitBreaker: { failureThreshold: 1_000_000 },
  });
/** Each with its own connections, so that they notify each other of their changes through the server. */
const caches = [open(), open()];
/** The latest time until which each key may be in the store. */
const expiries = new Float64Array(keyCount);
let operations = 0;
let failures = 0;

const below = (/** @type {number} */ limit) => Math.floor(Math.random() * limit);
const nameOf = (/** @type {number} */ at) => `entry-${at}`;
const someTags = () => Array.from({ length: below(3) }, () => `tag-${below(TAGS)}`);

/** @returns {{ value: unknown, ttl: number, tags: string[] }} */
function something() {
  const value = { at: Date.now(), text: "x".repeat(below(200)), list: [1, 2, 3] };
  return { value, ttl: 1 + Math.random() * (LONGEST_TTL - 1), tags: someTags() };
}

/** @param {number} at @param {number} ttl */
function stored(at, ttl) {
  expiries[at] = Math.max(expiries[at] ?? 0, performance.now() + ttl * 1_000);
}

/** One operation, chosen at random. */
async function operate() {
  const cache = /** @type {InstanceType<typeof XCache>} */ (caches[below(caches.length)]);
  const at = below(Math.random() < 0.1 ? HOT_KEYS : keyCount);
  const chance = Math.random();
  if (chance < 0.35) await cache.get(nameOf(at));
  else if (chance < 0.55) {
    const { value, ttl, tags } = something();
    await cache.set(nameOf(at), value, { ttl, tags });
    stored(at, ttl);
  } else if (chance < 0.8) {
    const { value, ttl, tags } = something();
    await cache.getOrSet(nameOf(at), () => value, { ttl, tags });
    stored(at, ttl);
  } else if (chance < 0.85) await cache.getMany(Array.from({ length: 20 }, () => nameOf(below(keyCount))));
  else if (chance < 0.95) await cache.delete(nameOf(at));
  else if (chance < 0.97) await cache.exists(nameOf(at));
  else await cache.invalidateTags(`tag-${below(TAGS)}`);
}

/** @param {number} until */
async function work(until) {
  while (performance.now() < until) {
    operations++;
    await operate().catch(() => failures++);
  }
}

/** Opens a separate connection, and abandons a scan halfway. */
async function look() {
  for (const cache of caches) {
    await cache.getStats();
    for await (const _ of cache.keys()) break;
  }
}

const listenersOf = (/** @type {import("node:events").EventEmitter} */ emitter) =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);

/**
 * The number that a reply begins with: a count, or the length of a list.
 * @param {string} command
 */
async function ask(command) {
  const { connect } = await import("node:net");
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    socket.write(`${command}\r\n`);
    for await (const reply of socket) return Number(/^[:*](\d+)/.exec(String(reply))?.[1]);
    return Number.NaN;
  } finally {
    socket.destroy();
  }
}

const serverKeys = () => ask("DBSIZE");

/** @returns {Promise<Sample>} */
async function sample() {
  // What has ended is released in the following turns of the event loop.
  for (let round = 0; round < 3; round++) {
    await pause(20);
    await gc();
  }
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  const now = performance.now();
  return {
    minute: now / 60_000,
    operations,
    failures,
    heapMb: heapUsed / 2 ** 20,
    buffersMb: arrayBuffers / 2 ** 20,
    rssMb: rss / 2 ** 20,
    timers: waitingTimers(),
    sockets: sockets.size,
    resources: process.getActiveResourcesInfo().length,
    listeners: [process, ...sockets].reduce((sum, emitter) => sum + listenersOf(emitter), 0),
    serverKeys: await serverKeys(),
    liveKeys:
      LASTING_RECORDS +
      mostMinutes() +
      TAGS +
      expiries.reduce((count, expiry) => count + (expiry > now ? 1 : 0), 0),
  };
}

/** Fills the log of recent changes, which would look like growth otherwise. */
async function warmUp() {
  for (const cache of caches) {
    await cache.delete(Array.from({ length: REMEMBERED }, (_, at) => nameOf(at)));
  }
}

/** Waits until everything has expired; resolves with what is left on the server besides the per-minute records. */
async function drained() {
  const until = performance.now() + 4 * LONGEST_TTL * 1_000;
  for (;;) {
    const minutes = await ask("KEYS churn!x:minute:*");
    const left = (await serverKeys()) - Math.min(minutes, mostMinutes());
    if (left <= LASTING_RECORDS || performance.now() > until) return left;
    await pause(500);
  }
}

async function main() {
  /** @type {Sample[]} */
  const samples = [];
  await warmUp();
  printRow();
  const end = performance.now() + minutes * 60_000;
  let nextRow = 0;
  while (performance.now() < end) {
    const until = performance.now() + sliceMs;
    await Promise.all(Array.from({ length: AT_ONCE }, () => work(until)));
    await look();
    const one = await sample();
    samples.push(one);
    if (performance.now() < nextRow && performance.now() < end) continue;
    printRow(one);
    nextRow = minutes > 5 ? performance.now() + 60_000 - sliceMs : 0;
  }
  const left = await drained();
  for (const cache of caches) await cache.disconnect();
  return verdict({ ...growth(samples), left, mostLeft: LASTING_RECORDS, failures });
}

process.exitCode = (await main()) ? 0 : 1;
