// A consumer that is an ES module; also what a bundler sees.
import { AlertManager, type CacheStats, cached, type MissingPeerError, XCache } from "xcache";
import { backendContract } from "xcache/testing";
import { httpCache as fetchCache } from "xcache/web/fetch";
import { httpCache } from "xcache/web/node";

const cache = new XCache({ kvUrl: "memory://", nearCache: { maxEntries: 100 } });
const count: number | undefined = await cache.get<number>("count");
const total: number = await cache.getOrSet("total", async ({ setTtl }) => {
  setTtl(60);
  return (count ?? 0) + 1;
});
// @ts-expect-error a ttl is a number of seconds
await cache.set("total", total, { ttl: "60" });
// @ts-expect-error there is no such field
new XCache({ kvURL: "memory://" });

const square = cached(async (n: number) => n * n, { cache, name: "square" });
const sixteen: number = await square(4);
// @ts-expect-error the arguments are those of the function
await square("4");

const stats: CacheStats = await cache.getStats();
const rate: number = stats.hitRate;
const command = (error: MissingPeerError): string => error.installCommand;
// @ts-expect-error an alert goes somewhere
new AlertManager(cache).addAlert({ name: "a", metric: "hit_rate", comparison: "less_than", threshold: 0.5 });
const listener: unknown = httpCache({ cache, ttl: 60 });
const handler: (request: Request) => Promise<Response> = fetchCache({ cache })(() => new Response("page"));

export { backendContract, command, handler, listener, rate, sixteen };
