// A short tour of xcache on the embedded store: no server, under ten seconds.
import { setTimeout as wait } from "node:timers/promises";
import { cached, VERSION, XCache } from "xcache";

const color = process.stdout.isTTY && process.env.NO_COLOR === undefined;
const paint = (code, text) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
const title = (text) => console.log(`\n${paint("1;36", text)}`);
const line = (what, result) => console.log(`  ${what.padEnd(52)} ${paint("32", result)}`);
const ms = (since) => `${(performance.now() - since).toFixed(since === 0 ? 0 : 2)} ms`;

const cache = new XCache({ kvUrl: "memory://", defaultTtl: 60 });
console.log(`${paint("1", `xcache ${VERSION}`)}: a cache in this process, nothing to install or start`);

title("1. Set and get");
await cache.set("user:1", { name: "Ada", born: new Date("1815-12-10"), tags: new Set(["maths"]) });
const ada = await cache.get("user:1");
line("cache.set, then cache.get", `${ada.name}, born ${ada.born.getUTCFullYear()}`);
line("a Date is a Date, a Set is a Set", String(ada.born instanceof Date && ada.tags.has("maths")));
ada.name = "changed by the caller";
line("what a caller changes is its own", `stored: ${(await cache.get("user:1")).name}`);

title("2. A slow function made fast");
let queries = 0;
async function fetchReport(id) {
  queries++;
  await wait(200);
  return { id, total: id * 100 };
}
const report = cached(fetchReport, { cache, ttl: 30, tags: (id) => ["reports", `report:${id}`] });
const first = performance.now();
await report(7);
line("first call runs the function", ms(first));
const second = performance.now();
await report(7);
line("second call does not", ms(second));
line("its key, readable", report.key(7));

title("3. A tag invalidation");
await report(8);
const cut = performance.now();
await cache.invalidateTags("reports");
line("invalidateTags('reports'): one step for any number", ms(cut));
line(
  "both reports are gone",
  String(!(await cache.exists(report.key(7))) && !(await cache.exists(report.key(8)))),
);

title("4. An invalidation during a load is not lost");
const slow = report(9);
await wait(50);
await report.invalidate(9);
await slow;
line("the load that began before it is not stored", String(!(await cache.exists(report.key(9)))));

title("5. 1,000 callers, one load");
queries = 0;
const rush = performance.now();
const answers = await Promise.all(Array.from({ length: 1_000 }, () => report(42)));
line("1,000 calls at once on a cold key", ms(rush));
line("loads that ran", String(queries));
line("answers, each its own object", `${answers.length}, ${new Set(answers).size} distinct`);

title("6. How fast is a hit");
const rounds = 200_000;
const hits = performance.now();
for (let n = 0; n < rounds; n++) await cache.get("user:1");
const perSecond = rounds / ((performance.now() - hits) / 1000);
line(
  `${rounds.toLocaleString("en")} awaited gets, one after another`,
  `${Math.round(perSecond).toLocaleString("en")} per second`,
);

title("The figures that prove it");
const stats = await cache.getStats({ exact: true });
line("hit rate", `${(stats.hitRate * 100).toFixed(2)} %`);
line("hits / misses / sets", `${stats.totalHits} / ${stats.totalMisses} / ${stats.totalSets}`);
line("live keys, bytes", `${stats.totalKeys}, ${stats.totalMemoryBytes}`);
line("health", (await cache.detailedHealthCheck()).status);
if (queries !== 1) process.exitCode = 1;
await cache.disconnect();
console.log("\nNext: README.md, and docs/ for every store, framework and guarantee.");
