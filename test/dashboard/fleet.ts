// Three processes that use one cache on a real server, and a dashboard that looks at it.
import { type LocalDashboard, serveLocally } from "../../src/dashboard/local.ts";
import { XCache } from "../../src/index.ts";
import { OwnProcess } from "../support/own-process.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";

/** Ten seconds pass when it is told so. */
const SCRIPT = `
import { cacheWithClock } from "./testing/index.js";
import { AlertManager, cached } from "./index.js";

const due = new Set();
const after = (delayMs, run) => {
  if (delayMs < 10_000) return systemClock.after(delayMs, run);
  due.add(run);
  return { cancel: () => due.delete(run) };
};
const cache = cacheWithClock({ ...settings.config, operationTimeout: 10, nearCache: true }, { ...systemClock, after });
const getUser = cached(async (id) => ({ id, name: "Ada", password: "hidden" }), { cache, name: "getUser", ttl: 600, tags: ["users"] });
const getInventory = cached(async (id) => id, { cache, name: "getInventory", ttl: 5, tags: ["catalog"] });
const alerts = new AlertManager(cache, { interval: 1 });
alerts.addAlert({ name: "hit_rate_low", metric: "hit_rate", comparison: "less_than", threshold: 0.99, webhookUrl: "http://127.0.0.1:9/" });
alerts.start();
for (let at = 0; at < 60; at++) {
  await getUser(at % 10);
  await getInventory(settings.at * 100 + at);
}
await cache.invalidateTags("catalog");
say("used");
for (;;) {
  const { what } = await nextMessage();
  if (what === "leave") break;
  const runs = [...due];
  due.clear();
  for (const run of runs) run();
  say(what);
}
await alerts.stop({ timeout: 0 });
await cache.disconnect();
process.disconnect();
`;

export interface Fleet {
  readonly server: RedisServer;
  /** Of every cache of it. */
  readonly config: { readonly kvUrl: string; readonly keyPrefix: string };
  readonly cache: XCache;
  readonly board: LocalDashboard;
  /** Ten seconds pass for the processes, so that they report. */
  report(): Promise<void>;
  stop(): Promise<void>;
}

/** What the entries are besides those of the functions: hostile ones among them. */
export const HOSTILE_KEY = "user:<img src=x onerror=alert(1)>";
export const BIDI_KEY = "user:\u202egnp.exe\u0007";

export async function startFleet(): Promise<Fleet> {
  const server = await startRedis();
  const config = { kvUrl: server.url, keyPrefix: "shop" };
  const processes = [1, 2, 3].map((at) => new OwnProcess(SCRIPT, { settings: { config, at } }));
  for (const each of processes) await each.heard("used");
  // As the command line does: it looks and leaves no trace.
  const cache = new XCache({ ...config, enableMetrics: false, operationTimeout: 20 });
  await cache.set(HOSTILE_KEY, "<script>document.title='owned'</script>", { ttl: 600, tags: ["<b>tag</b>"] });
  await cache.set(BIDI_KEY, new Map([["when", new Date(0)]]), { ttl: 600, tags: ["users"] });
  await cache.set("x".repeat(60_000), new Uint8Array([0, 1, 255]), { ttl: 600 });
  await cache.set("big", "y".repeat(2_000_000), { ttl: 600 });
  await cache.setMany(
    Array.from({ length: 40 }, (_, at) => [`session:${at}`, at] as const),
    {
      ttl: Number.POSITIVE_INFINITY,
    },
  );
  const report = async (): Promise<void> => {
    for (const each of processes) {
      each.tell({ what: "report" });
      await each.heard("report");
    }
  };
  await report();
  const board = await serveLocally({
    cache,
    port: 0,
    values: true,
    writes: true,
    onRequest: () => {},
    doctor: async () => [{ name: "connection", state: "ok", detail: "answered", advice: null }],
  });
  return {
    server,
    config,
    cache,
    board,
    report,
    async stop() {
      await board.close();
      for (const each of processes) {
        each.tell({ what: "leave" });
        await each.ended();
      }
      await cache.disconnect();
      await server.stop();
    },
  };
}
