// What `DEBUG=xcache:*` costs while it is off: `node bench/debug/run.mjs [--rounds 7]`. Compares the library with builds that lack
// the calls, by CPU time, in turns; each measurement is a separate process.
import { spawnSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { median, timeChunks } from "../timing.mjs";
import { build, VARIANTS } from "./variants.mjs";

const KEYS = 1_000;
const LENGTH = 1 << 20;

/** What is measured: each opens the caches it needs and returns the call for a position of the sequence. */
const CALLS = {
  "get, hit": async ({ XCache }) => {
    const cache = await filled(XCache);
    return (at) => cache.get(`key:${at % KEYS}`);
  },
  "getOrSet, hit": async ({ XCache }) => {
    const cache = await filled(XCache);
    const load = async () => "loaded";
    return (at) => cache.getOrSet(`key:${at % KEYS}`, load);
  },
  "getOrSet, miss": async ({ XCache }) => {
    const cache = new XCache({ kvUrl: "memory://?max_entries=1000" });
    const load = async () => "loaded";
    let next = 0;
    return () => cache.getOrSet(`key:${next++}`, load);
  },
  set: async ({ XCache }) => {
    const cache = await filled(XCache);
    return (at) => cache.set(`key:${at % KEYS}`, "value");
  },
  "HTTP, hit": async ({ XCache, httpCache }) => {
    const handler = httpCache({ cache: new XCache({ kvUrl: "memory://" }), ttl: 3_600 })(
      () => new Response("hello"),
    );
    const request = new Request("http://localhost/page");
    await (await handler(request)).text();
    return () => handler(request);
  },
};

async function filled(XCache) {
  const cache = new XCache({ kvUrl: "memory://?values=shared", defaultTtl: 3_600 });
  for (let at = 0; at < KEYS; at++) await cache.set(`key:${at}`, "value");
  return cache;
}

/** Nanoseconds of CPU time per call, printed for the parent process. */
async function measure(module, name) {
  const call = await CALLS[name](await import(pathToFileURL(module).href));
  const { cpu } = await timeChunks(LENGTH, async (from, to) => {
    for (let at = from; at < to; at++) await call(at);
  });
  console.log(cpu);
  process.exit(0);
}

function measured(module, name) {
  const env = { ...process.env };
  delete env.DEBUG;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [fileURLToPath(import.meta.url), module, name],
    {
      encoding: "utf8",
      env,
    },
  );
  if (status !== 0) throw new Error(stderr);
  return Number(stdout);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "7" } },
});
if (positionals.length === 2) await measure(...positionals);

const names = Object.keys(VARIANTS);
const modules = [];
for (const name of names) modules.push(await build(name));
console.log(
  `CPU time per call, median of ${values.rounds} rounds; ratios are formed within a round (lowest to highest)\n`,
);
console.log(
  `| call | ${names[0]} | ${names
    .slice(1)
    .map((name) => `as it is / ${name}`)
    .join(" | ")} |`,
);
console.log(`|---|---:|${"---:|".repeat(names.length - 1)}`);
for (const call of Object.keys(CALLS)) {
  const rounds = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const order = modules.map((_, at) => (at + round) % modules.length);
    const figures = [];
    for (const at of order) figures[at] = measured(modules[at], call);
    rounds.push(figures);
  }
  const ratios = names.slice(1).map((_, index) => {
    const each = rounds.map((figures) => figures[0] / figures[index + 1]);
    return `${median(each).toFixed(3)} (${Math.min(...each).toFixed(2)} to ${Math.max(...each).toFixed(2)})`;
  });
  console.log(
    `| ${call} | ${median(rounds.map(([first]) => first)).toFixed(0)} ns | ${ratios.join(" | ")} |`,
  );
}
