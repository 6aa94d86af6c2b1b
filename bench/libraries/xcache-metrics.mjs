// xcache while it collects metrics.
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  const driver = await openXCache(options);
  driver.cache.startMetricsCollection();
  return driver;
}
