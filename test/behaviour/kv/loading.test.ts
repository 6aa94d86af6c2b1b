// A server that is still loading its snapshot answers -LOADING: calls fail in time, and it is used once it has finished.
// The client is there with the test; see redis-caches.ts.
import "../../../src/backends/kv/client.ts";
import { afterEach, expect, it } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { expectFailures, expectRecovery, prepare, TROUBLED } from "../../support/kv/trouble.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const FILL = `for n = 1, 5000 do redis.call("SET", "filler:" .. n, string.rep("x", 1024)) end`;

/** The snapshot would take half a minute to load; the server answers commands between any two keys. */
const SLOW_TO_LOAD = [
  ...["--key-load-delay", "5000"],
  ...["--loading-process-events-interval-bytes", "1024"],
  ...["--rdbcompression", "no"],
];

const answer = (server: RedisServer): Promise<string> => server.cli("get", "anything").catch(String);

/** A cache that has lost the server reconnects a moment later. */
const hearsOfIt = (cache: XCache): Promise<unknown> =>
  until(async () => /LOADING/.test(String(await cache.get("kept").catch(String))), {
    what: "the cache learns that the server is loading",
  });

let caches: XCache[] = [];
afterEach(async () => {
  for (const cache of caches) await cache.disconnect();
  caches = [];
});

function open(server: RedisServer, name: string, nearCache: boolean): XCache {
  const cache = new XCache({ ...TROUBLED, kvUrl: server.url, keyPrefix: `${name}-${nearCache}`, nearCache });
  caches.push(cache);
  return cache;
}

it("a server that is loading fails calls in time, and is used once it has loaded", async () => {
  await using server = await startRedis({ args: SLOW_TO_LOAD, isReadyWhileLoading: true });
  const known = [open(server, "known", true), open(server, "known", false)];
  await Promise.all(known.map(prepare));
  await server.cli("eval", FILL, "0");
  await server.cli("save");
  await server.restart("SIGKILL");
  expect(await answer(server)).toContain("LOADING");

  await Promise.all(known.map(hearsOfIt));
  const met = [open(server, "met", true), open(server, "met", false)];
  await Promise.all([...known, ...met].map(expectFailures));
  await Promise.all(met.map(hearsOfIt));
  expect(await answer(server)).toContain("LOADING");

  await server.cli("config", "set", "key-load-delay", "0");
  await Promise.all([...known, ...met].map(expectRecovery));
  expect(await server.cli("exists", "filler:1", "filler:5000")).toBe("2");
});
