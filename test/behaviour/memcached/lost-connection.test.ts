// A lost connection to memcached is one failure: reads are resent, only writes in flight fail.
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { Load } from "../../support/load.ts";
import { startMemcached } from "../../support/memcached.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function relayed(): Promise<{ relay: Relay; url: string }> {
  const server = await startMemcached();
  stops.push(() => server.stop());
  const relay = await Relay.start(server.port);
  stops.push(() => relay.stop());
  return { relay, url: `memcached://127.0.0.1:${relay.port}` };
}

function open(kvUrl: string, poolSize = 1, operationTimeout = 1): XCache {
  const circuitBreaker = { failureThreshold: 5, resetTimeout: 60 };
  const cache = new XCache({ kvUrl, poolSize, operationTimeout, circuitBreaker });
  cache.on("error", () => {});
  stops.push(() => cache.disconnect());
  return cache;
}

describe.each([{ poolSize: 1 }, { poolSize: 8 }])("under load, with pool_size $poolSize", ({ poolSize }) => {
  it("resets fail the writes in flight and nothing else", async () => {
    const { relay, url } = await relayed();
    const load = new Load(open(url, poolSize));
    await load.start();
    for (let kills = 0; kills < 5; kills++) {
      await pause(60);
      relay.reset();
    }
    await load.run(100);
    await load.stop();
    expect(load.reads).toEqual([]);
    expect(load.writes.length).toBeLessThanOrEqual(5 * soon(3));
    expect(load.states).toEqual([]);
  });
});

it("a server that restarts is used as soon as it listens, and receives pending invalidations without a call", async () => {
  const { relay, url } = await relayed();
  const cache = open(url, 1, 0.2);
  await cache.set("k", "old");
  relay.silence();
  for (let call = 0; call < 6; call++) await timed(cache.delete("k"));
  expect((await timed(cache.get("k"))).outcome).toMatchObject({ name: "CircuitOpenError" });
  await pause(700);
  relay.restore();
  const back = performance.now();
  // The address is part of every key, so both use the relay.
  const other = open(url);
  await until(async () => (await other.get("k")) === undefined, { what: "the delete is delivered" });
  expect(performance.now() - back).toBeLessThan(soon(1_000));
  expect(await cache.get("k")).toBeUndefined();
});
