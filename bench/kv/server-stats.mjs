// What a server was asked to do, from INFO.
import { forEachInFlight } from "./callers.mjs";

/** Calls of every command so far, except those that read the counts. Commands called by a script count as well. */
export async function commandCalls(server) {
  const info = await server.command("INFO", "commandstats");
  let calls = 0;
  for (const [, name, count] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (name !== "info") calls += Number(count);
  }
  return calls;
}

/** Keys found so far; one MGET may find many. */
async function keysFound(server) {
  const info = await server.command("INFO", "stats");
  return Number(/^keyspace_hits:(\d+)/m.exec(info)[1]);
}

/** How many keys the server finds per call of `call(at)`. */
export async function storeHitsPerCall(server, calls, call) {
  const before = await keysFound(server);
  await forEachInFlight(calls, call);
  return ((await keysFound(server)) - before) / calls;
}
