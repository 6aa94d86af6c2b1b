// A consumer that is a CommonJS module and requires the package, which Node does from 20.19 on.
import xcache = require("xcache");
import web = require("xcache/web/node");

async function useIt(): Promise<number | undefined> {
  const cache: xcache.XCache = new xcache.XCache({ kvUrl: "memory://" });
  // @ts-expect-error a ttl is a number of seconds
  await cache.set("total", 1, { ttl: "60" });
  const listener: unknown = web.httpCache({ cache });
  return listener === undefined ? undefined : cache.get<number>("total");
}

export = useIt;
