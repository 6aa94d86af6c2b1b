// Two caches around one handler are as invisible as one, whether or not they share their entries.
import { afterAll, describe, test } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { XCache } from "../../../src/xcache.ts";
import { Comparison } from "./comparison.ts";
import { BUILDS } from "./stages.ts";

const PROGRAMS = Number(process.env.XCACHE_TEST_PROGRAMS ?? 300);

const WAYS = ["with one cache that is registered twice", "with one store", "with a store each"] as const;

describe.each(
  Object.entries(BUILDS).flatMap(([name, build]) => WAYS.map((way) => [name, way, build] as const)),
)("on %s %s", (_name, way, build) => {
  const caches = [1, 2].map(() => new XCache({ backend: new MemoryBackend() }));
  afterAll(() => Promise.all(caches.map((cache) => cache.disconnect())));
  const servers = new Comparison(build, () => {
    const [first, second] = caches.map((cache, at) => {
      const own = way === "with a store each" ? cache : caches[0]!;
      return new HTTPCacheMiddleware<never>({ cache: own, varyCookie: false, cacheStatus: `cache-${at}` });
    });
    return [first!, way === "with one cache that is registered twice" ? first! : second!];
  });

  test("any program gives the same responses and sees the same response object", async () => {
    await servers.expectSame(PROGRAMS);
  });
});
