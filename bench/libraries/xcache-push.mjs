// xcache while it sends its counts to a StatsD daemon: here a socket that discards them.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { CacheMetrics, PushCollector } from "../../dist/index.js";
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  const daemon = createSocket("udp4");
  daemon.bind(0, "127.0.0.1");
  await once(daemon, "listening");
  daemon.unref();
  const collector = new PushCollector({ port: daemon.address().port, useTags: true });
  const driver = await openXCache(options, { metrics: new CacheMetrics([collector]) });
  driver.cache.startMetricsCollection();
  return driver;
}
