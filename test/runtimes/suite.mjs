// The contract suite and the parts that need nothing but web standards, for any runtime: `suite.mjs <Redis URL>`. Uses dist and
// no test runner, because none runs everywhere. Prints a JSON line of counts, and the failed cases before it.
import { deepEqual, equal } from "node:assert/strict";
import { Hono } from "hono";
import { cached, KvBackend, MemoryBackend, XCache } from "../../dist/index.js";
import { backendContract, ManualClock } from "../../dist/testing/index.js";
import { httpCache } from "../../dist/web/fetch.js";
import { httpCache as honoCache } from "../../dist/web/hono.js";

const [, , redisUrl = ""] = process.argv;
/** Cases run in parallel: most of them wait for entries to expire. */
const AT_ONCE = 8;

/** @type {{ readonly group: string, readonly name: string, readonly run: () => Promise<void> }[]} */
const cases = [];
const path = [];
const runner = {
  describe(name, body) {
    path.push(name);
    body();
    path.pop();
  },
  it: (name, run) => cases.push({ group: path[0] ?? "", name: [...path, name].join(" > "), run }),
};

backendContract(
  {
    name: "memory",
    offers: { shared: false, scan: true, push: false },
    open: async () => {
      const clock = new ManualClock();
      return {
        backend: new MemoryBackend(),
        clock,
        advance: (ms) => clock.advance(ms),
        close: async () => {},
      };
    },
  },
  runner,
);

/** A busy machine may exceed the default timeout; the cases do not check timing. */
const PATIENT = { operationTimeout: 5, connectTimeout: 10 };

function onRedis(name, config) {
  const client = () => new KvBackend({ kvUrl: redisUrl });
  const open = async () => ({
    backend: client(),
    second: async () => client(),
    cache: (backend, asked) => new XCache({ ...PATIENT, ...asked, ...config, backend }),
    close: async () => {},
  });
  backendContract({ name, offers: { shared: true, scan: true, push: true }, open }, runner);
}
onRedis("redis", {});
onRedis("redis with a near tier", { nearCache: true });

const stores = [
  ["memory", { kvUrl: "memory://" }],
  ["redis", { ...PATIENT, kvUrl: redisUrl, nearCache: true, keyPrefix: `runtime-${process.pid}` }],
];
for (const [store, config] of stores) {
  const inCache = (use) => async () => {
    const cache = new XCache(config);
    await cache.connect();
    try {
      await use(cache);
    } finally {
      await cache.disconnect();
    }
  };
  runner.describe("http", () => {
    const bodies = async (ask) => {
      const answers = [await ask(), await ask()];
      return Promise.all(answers.map((answer) => answer.text()));
    };
    runner.it(
      `fetch over ${store}`,
      inCache(async (cache) => {
        let runs = 0;
        const handler = httpCache({ cache, ttl: 60, tags: ["page"] })(() => new Response(`page ${++runs}`));
        const ask = () => handler(new Request(`http://localhost/${store}`));
        deepEqual(await bodies(ask), ["page 1", "page 1"]);
        const etag = (await ask()).headers.get("etag") ?? "";
        const again = new Request(`http://localhost/${store}`, { headers: { "if-none-match": etag } });
        equal((await handler(again)).status, 304);
        await cache.invalidateTags("page");
        equal(await (await ask()).text(), "page 2");
      }),
    );
    runner.it(
      `Hono over ${store}`,
      inCache(async (cache) => {
        let runs = 0;
        const app = new Hono();
        app.use(honoCache({ cache, ttl: 60, tags: ["hono"] }, app));
        app.get("/hono", (context) => context.text(`page ${++runs}`));
        deepEqual(await bodies(() => app.request("/hono")), ["page 1", "page 1"]);
        await cache.invalidateTags("hono");
        equal(await (await app.request("/hono")).text(), "page 2");
      }),
    );
  });
  runner.describe("cached", () => {
    runner.it(
      `one load for concurrent callers, over ${store}`,
      inCache(async (cache) => {
        let loads = 0;
        async function user(id) {
          loads++;
          return { id, at: new Date(5) };
        }
        const getUser = cached(user, { cache, ttl: 60, tags: ["users"] });
        const found = await Promise.all(Array.from({ length: 10 }, () => getUser(1)));
        deepEqual(found, Array(10).fill({ id: 1, at: new Date(5) }));
        equal(loads, 1);
        await cache.invalidateTags("users");
        await getUser(1);
        equal(loads, 2);
      }),
    );
  });
}

const counts = {};
const failures = [];
async function work() {
  for (let next = cases.shift(); next !== undefined; next = cases.shift()) {
    counts[next.group] ??= { passed: 0, failed: 0 };
    try {
      await next.run();
      counts[next.group].passed++;
    } catch (error) {
      counts[next.group].failed++;
      failures.push(`${next.name}: ${error?.stack ?? error}`);
    }
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
for (const failure of failures) console.log(failure);
console.log(JSON.stringify(counts));
process.exit(failures.length === 0 ? 0 : 1);
