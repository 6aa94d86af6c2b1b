// xcache while Prometheus scrapes it: the series are read periodically, as a server would.
import { CacheMetrics, PullCollector } from "../../dist/index.js";
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  const collector = new PullCollector({ port: 0 });
  const driver = await openXCache(options, { metrics: new CacheMetrics([collector]) });
  driver.cache.startMetricsCollection();
  setInterval(() => collector.metrics(), 200).unref();
  return driver;
}
