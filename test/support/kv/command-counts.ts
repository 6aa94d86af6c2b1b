// How often real servers have executed each command, by their own count.
import type { RedisServer } from "../redis.ts";

/** Commands that the test itself gives. */
const OWN = /^(info|config\|resetstat)$/;

/** Of all these servers together, by command, such as `get` or `client|caching`; those that a script runs count as well. */
export async function commandCounts(
  servers: readonly RedisServer[],
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  const stats = await Promise.all(servers.map((server) => server.cli("INFO", "commandstats")));
  for (const [, name = "", calls] of stats.join("\n").matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
    if (!OWN.test(name)) counts[name] = (counts[name] ?? 0) + Number(calls);
  }
  return counts;
}

/** Resets the counts. */
export async function countAnew(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.cli("CONFIG", "RESETSTAT")));
}
