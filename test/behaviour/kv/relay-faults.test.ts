// A bad network between a cache and its server delays a call by at most the deadline, and the cache recovers by itself.
// An unhandled rejection fails the run by itself.
import { describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import type { XCache } from "../../../src/xcache.ts";
import { exchange } from "../../support/exchange.ts";
import {
  expectFailures,
  expectRecovery,
  inTime,
  OPERATIONS,
  prepare,
  resumes,
  SLACK_MS,
  TIMEOUT_MS,
  TROUBLED,
} from "../../support/kv/trouble.ts";
import { WireTap } from "../../support/kv/wire-tap.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { Relay } from "../../support/relay.ts";

const caches = redisCaches(TROUBLED);
let scenarios = 0;

/** Runs with and without a near tier at the same time, each over a relay of its own. */
async function nearAndFar(
  scenario: (cache: XCache, relay: Relay) => Promise<void>,
  config: CacheConfig = {},
): Promise<void> {
  const both = [true, false].map(async (nearCache) => {
    await using relay = await Relay.start(caches.server.port);
    const own = { kvUrl: relay.url, keyPrefix: `scenario-${++scenarios}`, nearCache };
    await scenario(caches.open({ ...own, ...config }), relay);
  });
  await Promise.all(both);
}

describe("the relay", () => {
  const ask = (
    relay: Relay,
    isComplete = (reply: string): boolean => reply === "+PONG\r\n",
  ): Promise<string> => exchange({ port: relay.port, timeoutMs: soon(150) }, "PING\r\n", isComplete);

  it("applies the requested fault", async () => {
    await using relay = await Relay.start(caches.server.port);
    await ask(relay);

    relay.cutReplies(2, 1);
    let seen = "";
    const cut = ask(relay, (reply) => {
      seen = reply;
      return false;
    });
    await expect(cut).rejects.toMatchObject({ code: "ECONNRESET" });
    expect({ seen, cuts: relay.cuts }).toEqual({ seen: "+P", cuts: 1 });
    await ask(relay);

    relay.silence();
    await expect(ask(relay)).rejects.toThrow("no reply within");

    relay.delayReplies(100);
    const { ms, outcome } = await timed(ask(relay));
    expect(outcome).toBe("+PONG\r\n");
    expect(ms).toBeGreaterThan(95);

    relay.restore();
    await ask(relay);
  });
});

describe("as long as connections", () => {
  it.each([
    ["are reset in the middle of a reply", (relay: Relay) => relay.cutReplies(2)],
    ["are half open, and nothing passes", (relay: Relay) => relay.silence()],
    ["bring replies long after the deadline", (relay: Relay) => relay.delayReplies(1_500)],
  ])("%s, calls fail in time; then the cache recovers, and nothing is lost", async (_name, begin) => {
    await nearAndFar(async (cache, relay) => {
      await prepare(cache);
      begin(relay);
      await expectFailures(cache);
      relay.restore();
      await expectRecovery(cache);
    });
  });
});

describe("a connection", () => {
  it.each(OPERATIONS)(
    "that is reset once, early or late in the replies to $name, is replaced",
    async (operation) => {
      for (const bytes of [2, 7, 40, 400]) {
        await nearAndFar(async (cache, relay) => {
          await prepare(cache);
          relay.cutReplies(bytes, 1);
          // The reset is noticed when it happens, not at the deadline.
          const outcome = await inTime(operation, cache, TIMEOUT_MS);
          expect([operation.success, operation.failure]).toContainEqual(outcome);
          if (bytes === 2) expect(relay.cuts).toBe(1);
          relay.restore();
          await resumes(cache);
          await operation.hasEffect?.(cache);
        });
      }
    },
  );

  it("that dies silently is replaced after one deadline", async () => {
    await nearAndFar(async (cache, relay) => {
      await prepare(cache);
      relay.strand();
      const outcomes = await Promise.all(OPERATIONS.map((operation) => inTime(operation, cache)));
      expect(outcomes).toEqual(OPERATIONS.map(({ failure }) => failure));
      const started = performance.now();
      await expectRecovery(cache);
      expect(performance.now() - started).toBeLessThan(soon(SLACK_MS));
    });
  });
});

describe("slow replies within the deadline", () => {
  const DELAY_MS = 40;

  it("make calls slow but fail none, from the first on", async () => {
    await nearAndFar(
      async (cache, relay) => {
        relay.delayReplies(DELAY_MS);
        await prepare(cache);
        for (const { name, call, success } of OPERATIONS) {
          const { ms, outcome } = await timed(call(cache));
          expect(outcome, name).toEqual(success);
          // Timers may be a moment early.
          expect(ms, name).toBeGreaterThan(DELAY_MS - 5);
        }
      },
      { operationTimeout: 1 },
    );
  });
});

describe("a scan", () => {
  it.each<[string, (cache: XCache) => Promise<unknown>]>([
    ["invalidatePattern", (cache) => cache.invalidatePattern("k*")],
    [
      "keys",
      async (cache) => {
        for await (const _ of cache.keys());
      },
    ],
    ["getStats, exactly,", (cache) => cache.getStats({ exact: true })],
  ])("that is cut off after the names of the keys fails: %s does not find nothing", async (_name, scan) => {
    using wire = new WireTap();
    await using relay = await Relay.start(caches.server.port);
    const cache = caches.open({ kvUrl: relay.url });
    await cache.set("k", 1);
    wire.hear = ([command]) => {
      if (command === "GETRANGE") relay.cutReplies(2);
    };
    await expect(scan(cache)).rejects.toBeInstanceOf(ConnectionError);
    expect(await caches.server.cli("EXISTS", `${caches.prefix}:k`)).toBe("1");
  });
});
