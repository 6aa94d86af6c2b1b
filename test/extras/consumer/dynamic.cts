// A consumer that is a CommonJS module under rules from before require of ES modules: it imports when it needs to.
import type { XCache } from "xcache" with { "resolution-mode": "import" };

async function open(): Promise<XCache> {
  const xcache = await import("xcache");
  const cache = new xcache.XCache({ kvUrl: "memory://" });
  // @ts-expect-error a ttl is a number of seconds
  await cache.set("total", 1, { ttl: "60" });
  return cache;
}

export = open;
