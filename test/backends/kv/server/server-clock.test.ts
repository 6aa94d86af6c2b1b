// Expiry follows the server's time: processes whose own clocks disagree, or jump, agree on it.
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../../src/core/clock.ts";
import { ManualClock } from "../../../../src/testing/index.ts";
import type { XCache } from "../../../../src/xcache.ts";
import { redisCaches } from "../../../support/redis-caches.ts";
import { until } from "../../../support/until.ts";

const TEN_MINUTES_MS = 600_000;

const caches = redisCaches({});
const { open } = caches;

/** Runs as this machine's clock does, ahead by this much. */
const shifted = (byMs: number): Clock => ({
  ...systemClock,
  now: () => systemClock.now() + byMs,
  coarse: () => systemClock.coarse() + byMs,
});

interface Pair {
  readonly what: string;
  readonly writer: XCache;
  readonly reader: XCache;
}

/** The clocks are twenty minutes apart. */
function pairs(nearCache: boolean): readonly Pair[] {
  const [behind, ahead] = [-TEN_MINUTES_MS, TEN_MINUTES_MS].map((byMs) => open({ nearCache }, shifted(byMs)));
  return [
    { what: "behind", writer: behind!, reader: ahead! },
    { what: "ahead", writer: ahead!, reader: behind! },
  ];
}

const serverNow = async (): Promise<number> => {
  const [seconds, microseconds] = (await caches.server.cli("time")).split("\n").map(Number);
  return seconds! * 1_000 + microseconds! / 1_000;
};

describe.each([true, false])("processes whose clocks are far apart (near cache %s)", (nearCache) => {
  it("see each other's entries as fresh, with the same time left", async () => {
    for (const { what, writer, reader } of pairs(nearCache)) {
      await writer.set(what, 1, { ttl: 60 });
      for (const cache of [writer, reader]) {
        for (let read = 0; read < 3; read++) expect(await cache.get(what), what).toBe(1);
        expect((await cache.getMany([what])).size, what).toBe(1);
        const left = await cache.ttl(what);
        expect(left, what).toBeGreaterThan(50);
        expect(left, what).toBeLessThan(61);
      }
    }
  });

  it("lose them when they expire on the server, even if it still has them", async () => {
    const began = await serverNow();
    await Promise.all(
      pairs(nearCache).map(async ({ what, writer, reader }) => {
        await writer.set(what, 1, { ttl: 1.5 });
        // Nor does it announce that they have expired.
        expect(await caches.server.cli("persist", `${caches.prefix}:${what}`)).toBe("1");
        for (const cache of [writer, reader]) expect(await cache.get(what), what).toBe(1);
        for (const cache of [writer, reader]) {
          await until(async () => (await cache.get(what)) === undefined, {
            what: `what was written ${what} is over`,
            timeoutMs: 4_000,
          });
        }
        expect((await serverNow()) - began, what).toBeGreaterThan(1_000);
        expect(await caches.server.cli("exists", `${caches.prefix}:${what}`)).toBe("1");
      }),
    );
  });
});

/** The cache's connections. */
async function connectionIds(): Promise<readonly string[]> {
  const clients = await caches.server.cli("client", "list");
  return clients.split("\n").flatMap((line) => /^id=(\d+) .*\bname=xcache\b/.exec(line)?.[1] ?? []);
}

describe("a clock that jumps", () => {
  it.each([true, false])(
    "is compared with the server's again, without another connection (near cache %s)",
    async (nearCache) => {
      const clock = new ManualClock();
      const cache = open({ nearCache, operationTimeout: 3_600 }, clock);
      await cache.set("k", 1, { ttl: 300 });
      for (let read = 0; read < 3; read++) expect(await cache.get("k")).toBe(1);
      const before = await connectionIds();
      await clock.jump(TEN_MINUTES_MS);
      // By the old comparison it would have expired five minutes ago.
      await until(() => clock.advance(20).then(async () => (await cache.get("k")) === 1), {
        what: "it is found fresh",
        timeoutMs: 2_000,
      });
      expect(await cache.ttl("k")).toBeGreaterThan(250);
      expect(before).toEqual(expect.arrayContaining([...(await connectionIds())]));
    },
  );
});
