// Fuzzy search over a million keys: time, longest blocking of the event loop, memory, recall of single typos.
// node --expose-gc bench/fuzzy/run.mjs [keys = 1000000]   (needs a build; XCACHE_DIST names another folder of compiled modules)

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const dist = process.env.XCACHE_DIST ?? new URL("../../.cache/modules", import.meta.url).pathname;
const { fuzzySearch } = await import(pathToFileURL(resolve(dist, "search/fuzzy.js")).href);
const KEYS = Number(process.argv[2] ?? 1_000_000);
const QUERIES = 30;

let seed = 20261101;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];

const SYLLABLES =
  "ka lo mi ren tas vo shi pel dor an bel cru fen gil hu jax quo wyn zor eth ma ri sto ul".split(" ");
const word = () => Array.from({ length: 2 + below(3) }, () => pick(SYLLABLES)).join("");
const key = (i) =>
  `${pick(["user", "session", "order", "product"])}:${word()}-${word()}:${(i * 7919).toString(36)}`;
// Through a buffer, so that they are flat strings like those from a store.
const keys = Array.from({ length: KEYS }, (_, i) => Buffer.from(key(i)).toString("latin1"));

/** Inserts, deletes, replaces or swaps one character. */
function typo(text) {
  const at = below(text.length - 1);
  const letter = String.fromCharCode(97 + below(26));
  return pick([
    text.slice(0, at) + letter + text.slice(at),
    text.slice(0, at) + text.slice(at + 1),
    text.slice(0, at) + letter + text.slice(at + 1),
    text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2),
  ]);
}

/** Part of a key, from anywhere in it, 12 to 20 characters long; in every third one the words are reordered. */
function query(target, i) {
  const length = Math.min(target.length, 12 + below(9));
  const from = below(target.length - length + 1);
  const text = typo(target.slice(from, from + length));
  return i % 3 ? text : text.split(":").reverse().join(" ");
}

/** The longest time the event loop was blocked, in wall-clock and in CPU time (other programs excluded). */
function watchLoop() {
  const longest = { wall: 0, cpu: 0 };
  const cpuMs = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  let wall = performance.now();
  let cpu = cpuMs();
  let running = true;
  const look = () => {
    const [wallNow, cpuNow] = [performance.now(), cpuMs()];
    longest.wall = Math.max(longest.wall, wallNow - wall);
    longest.cpu = Math.max(longest.cpu, cpuNow - cpu);
    [wall, cpu] = [wallNow, cpuNow];
    if (running) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    running = false;
    return longest;
  };
}

async function* inBatches(size) {
  for (let i = 0; i < keys.length; i += size) yield keys.slice(i, i + size);
}
async function* oneByOne() {
  yield* keys;
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const average = keys.reduce((sum, each) => sum + each.length, 0) / keys.length;
console.log(`${KEYS} keys of ${average.toFixed(1)} characters, such as ${keys[0]}; Node ${process.version}`);

globalThis.gc?.(); // otherwise the keys just made are collected during the first search
for (const [name, source] of [
  ["an array", () => keys],
  ["batches of 1,000", () => inBatches(1000)],
  ["one by one", oneByOne],
]) {
  const wall = [];
  const cpu = [];
  const held = [];
  for (let i = 0; i < 7; i++) {
    const text = query(pick(keys), i);
    const stop = watchLoop();
    const cpuBefore = process.cpuUsage();
    const before = performance.now();
    await fuzzySearch(source(), text, { limit: 20 });
    wall.push(performance.now() - before);
    const { user, system } = process.cpuUsage(cpuBefore);
    cpu.push((user + system) / 1000);
    held.push(stop());
  }
  console.log(
    `${name}: ${median(wall).toFixed(0)} ms (slowest ${Math.max(...wall).toFixed(0)}), ${median(cpu).toFixed(0)} ms of CPU,` +
      ` loop held for at most ${Math.max(...held.map((each) => each.wall)).toFixed(1)} ms` +
      ` (${Math.max(...held.map((each) => each.cpu)).toFixed(1)} ms of CPU)`,
  );
}

let found = 0;
for (let i = 0; i < QUERIES; i++) {
  const target = pick(keys);
  const text = query(target, i);
  const matches = await fuzzySearch(keys, text, { limit: 20 });
  const rank = matches.findIndex((match) => match.key === target);
  if (rank >= 0) found++;
  else
    console.log(
      `  not among the first 20 for "${text}": ${target}; first: ${matches[0]?.key} (${matches[0]?.score})`,
    );
}
console.log(`recall@20 of single typos: ${found} of ${QUERIES}`);

/** Keys that nobody retains, with a heap reading now and then: retained memory belongs to the search. */
async function heldByASearch(text, limit) {
  let most = 0;
  let before = 0;
  async function* fleeting() {
    for (let i = 0; i < KEYS; i += 1000) {
      yield Array.from({ length: 1000 }, (_, at) => key(i + at));
      if (i % 100_000 !== 0) continue;
      globalThis.gc?.();
      const { heapUsed } = process.memoryUsage();
      if (i === 0) before = heapUsed;
      else most = Math.max(most, heapUsed - before);
    }
  }
  await fuzzySearch(fleeting(), text, { limit, threshold: 50 });
  return most;
}

if (globalThis.gc === undefined) console.log("memory: run with --expose-gc to see it");
else
  for (const limit of [20, 1_000]) {
    const held = await heldByASearch("user:karenvo", limit);
    console.log(`memory held by a search with limit ${limit}: ${(held / 1024).toFixed(0)} KiB at most`);
  }
