// The cache is invisible: a handler and the middleware around it see the same response object, and a client gets the same
// response, as without it.
import { afterAll, describe, test } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { XCache } from "../../../src/xcache.ts";
import { Comparison } from "./comparison.ts";
import { BUILDS } from "./stages.ts";

const PROGRAMS = Number(process.env.XCACHE_TEST_PROGRAMS ?? 2_000);

describe.each(Object.entries(BUILDS))("on %s", (_name, build) => {
  const cache = new XCache({ backend: new MemoryBackend() });
  afterAll(() => cache.disconnect());
  const servers = new Comparison(build, () => [new HTTPCacheMiddleware<never>({ cache, varyCookie: false })]);

  test("any program gives the same responses and sees the same response object", async () => {
    await servers.expectSame(PROGRAMS);
  });
});
