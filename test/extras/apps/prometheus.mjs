import { register } from "prom-client";
import { CacheMetrics, PullCollector, XCache } from "xcache";
import { check, works } from "./check.mjs";

const cache = new XCache({ kvUrl: "memory://", metrics: new CacheMetrics([new PullCollector()]) });
await cache.get("absent");
check(/xcache_cache_misses_total\S* 1/.test(await register.metrics()), true, "a miss in the registry");
works("prom-client");
