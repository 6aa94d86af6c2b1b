// What a server says that it was asked to do, from INFO.

/** Calls of every command so far, without those that ask for it. Commands that a script calls count as well. */
export async function commandCalls(server) {
  const info = await server.command("INFO", "commandstats");
  let calls = 0;
  for (const [, name, count] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (name !== "info") calls += Number(count);
  }
  return calls;
}

/** Keys that were found so far; one MGET may find many. */
async function keysFound(server) {
  const info = await server.command("INFO", "stats");
  return Number(/^keyspace_hits:(\d+)/m.exec(info)[1]);
}

/** How many keys the server finds for one call, over calls made one after the other. */
export async function storeHitsPerCall(server, calls, call) {
  const before = await keysFound(server);
  for (let at = 0; at < calls; at++) await call(at);
  return ((await keysFound(server)) - before) / calls;
}
