// Nearest vectors: time of an exact search and of the graph, how long the event loop is blocked, memory, recall@10.
// node --expose-gc bench/vector/run.mjs [vectors = 20000] [dimensions = 384]   (needs a build; XCACHE_DIST names another folder of compiled modules)

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const dist = process.env.XCACHE_DIST ?? new URL("../../.cache/modules", import.meta.url).pathname;
const load = (path) => import(pathToFileURL(resolve(dist, path)).href);
const { VectorIndex } = await load("vector/vector-index.js");
const { lexicalEmbedder } = await load("vector/lexical-embedder.js");
const VECTORS = Number(process.argv[2] ?? 20_000);
const DIMENSIONS = Number(process.argv[3] ?? 384);
const QUERIES = 50;

let seed = 20261115;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const normal = () => random() + random() + random() - 1.5;
const centres = Array.from({ length: 200 }, () => Float32Array.from({ length: DIMENSIONS }, normal));
const vectorAt = (i) => centres[i % centres.length].map((part) => part + normal());

const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** The longest CPU time for which the event loop was blocked. */
function watchLoop() {
  let longest = 0;
  let cpu = cpuMs();
  let isRunning = true;
  const look = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - cpu);
    cpu = now;
    if (isRunning) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isRunning = false;
    return longest;
  };
}

async function measured(work) {
  const stop = watchLoop();
  const before = cpuMs();
  const result = await work();
  return { result, cpu: cpuMs() - before, held: stop() };
}

const report = (error) => console.log(error.message);
const settings = { metric: "cosine", dimensions: DIMENSIONS, maxVectors: VECTORS, report };
globalThis.gc?.();
const before = process.memoryUsage();
const exact = new VectorIndex({ ...settings, exactUpTo: VECTORS });
for (let i = 0; i < VECTORS; i++) exact.set(`question ${i}`, vectorAt(i));
globalThis.gc?.();
const after = process.memoryUsage();
const bytes = after.arrayBuffers - before.arrayBuffers + after.heapUsed - before.heapUsed;
console.log(`${VECTORS} vectors of ${DIMENSIONS} numbers; Node ${process.version}`);
console.log(`memory: ${(bytes / VECTORS).toFixed(0)} bytes a vector, ${4 * DIMENSIONS} of them its numbers`);

const queries = Array.from({ length: QUERIES }, (_, i) => vectorAt(i * 7));
const search = async (index) => {
  const found = [];
  for (const query of queries) found.push(await index.nearest(query, 10, 0));
  return found;
};
await search(exact);
const plain = await measured(() => search(exact));
const each = (cpu) => (cpu / QUERIES).toFixed(2);
console.log(
  `exact: ${each(plain.cpu)} ms of CPU a search, loop held for at most ${plain.held.toFixed(1)} ms`,
);

const graph = new VectorIndex({ ...settings, exactUpTo: VECTORS - 1 });
seed = 20261115;
for (let i = 0; i < centres.length * DIMENSIONS * 3; i++) random();
for (let i = 0; i < VECTORS; i++) graph.set(`question ${i}`, vectorAt(i));
const built = await measured(async () => {
  while (!graph.usesGraph) await new Promise((next) => setImmediate(next));
});
console.log(
  `graph: built in ${(built.cpu / 1000).toFixed(1)} s of CPU, loop held for at most ${built.held.toFixed(1)} ms`,
);
const near = await measured(() => search(graph));
let common = 0;
for (const [at, found] of near.result.entries()) {
  const keys = new Set(plain.result[at].map(({ key }) => key));
  common += found.filter(({ key }) => keys.has(key)).length;
}
console.log(
  `graph: ${each(near.cpu)} ms of CPU a search, recall@10 ${(common / (10 * QUERIES)).toFixed(3)} of exact`,
);

const embed = lexicalEmbedder();
const texts = Array.from({ length: 2_000 }, (_, i) => `How do I reset the password of account ${i * 7919}?`);
for (const text of texts) embed(text);
const embedded = await measured(async () => texts.map((text) => embed(text)));
console.log(`lexical embedder: ${((1000 * embedded.cpu) / texts.length).toFixed(0)} us of CPU a question`);
