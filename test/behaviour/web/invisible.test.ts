// The cache is invisible: a handler and the middleware around it see the same response object, and a client gets the same
// response, as without it.
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { XCache } from "../../../src/xcache.ts";
import { type Program, program } from "./programs.ts";
import { BUILDS, Stage } from "./stages.ts";
import type { Got } from "./wire.ts";

const PROGRAMS = Number(process.env.XCACHE_TEST_PROGRAMS ?? 2_000);
/** Programs that run at the same time. */
const AT_ONCE = 40;
/** Fixed, so that a run can be repeated; another one draws other programs. */
const SEED = Number(process.env.XCACHE_TEST_SEED ?? 1);

/** Fields that belong to the cache or to the connection, and how a body is framed. */
const NOT_COMPARED = [
  "age",
  "cache-status",
  "connection",
  "content-length",
  "date",
  "etag",
  "keep-alive",
  "trailer",
  "transfer-encoding",
];

function compared(got: Got): Got {
  const headers = { ...got.headers };
  for (const name of NOT_COMPARED) delete headers[name];
  return { ...got, headers };
}

/** As `expect`, which is slow for what is nearly always equal. */
function expectSame(got: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(got, expected)) expect(got, what).toEqual(expected);
}

describe.each(Object.entries(BUILDS))("on %s", (_name, build) => {
  const cache = new XCache({ backend: new MemoryBackend() });
  const bare = new Stage();
  const cached = new Stage();
  const { stackTraceLimit } = Error;
  beforeAll(async () => {
    // Express writes there what its handlers threw.
    vi.spyOn(console, "error").mockImplementation(() => {});
    await bare.open(build, undefined);
    await cached.open(build, new HTTPCacheMiddleware<never>({ cache, varyCookie: false }));
    // Most programs make node throw; nobody reads where.
    Error.stackTraceLimit = 0;
  });
  afterAll(async () => {
    Error.stackTraceLimit = stackTraceLimit;
    vi.restoreAllMocks();
    for (const each of [bare, cached]) each.close();
    await cache.disconnect();
  });

  test("any program gives the same responses and sees the same response object", async () => {
    let runs = 0;
    const check = async (own: Program): Promise<void> => {
      const path = `/program-${runs++}`;
      for (const stage of [bare, cached]) stage.programs.set(path, own);
      const expected = compared(await bare.ask(path, own.method));
      const trace = await bare.traceOf(path);
      for (const visit of runs % 8 === 0 ? ["first", "second", "third"] : ["first", "second"]) {
        const got = compared(await cached.ask(path, own.method));
        expectSame(got, expectedOf(expected, got), `${visit} visit`);
        // A hit does not run the handler: the trace stays that of the visit that did.
        expectSame(await cached.traceOf(path), trace, `trace of the ${visit} visit`);
      }
      for (const stage of [bare, cached]) stage.forget(path);
    };
    const programs = fc.sample(program, { seed: SEED, numRuns: PROGRAMS });
    for (let at = 0; at < PROGRAMS; at += AT_ONCE) {
      const outcomes = await Promise.allSettled(programs.slice(at, at + AT_ONCE).map(check));
      const failed = outcomes.findIndex(({ status }) => status === "rejected");
      if (failed < 0) continue;
      // The same one again, alone, to find a small one.
      await fc.assert(fc.asyncProperty(program, check), { seed: SEED, path: String(at + failed) });
      throw new Error("failed only next to others", { cause: outcomes[failed] });
    }
  });
});

/** A lifetime is added where the handler states none; nothing else may differ. */
function expectedOf(expected: Got, got: Got): Got {
  const own = expected.headers["cache-control"] ?? [];
  if (got.headers["cache-control"]?.join(", ") !== [...own, "max-age=60"].join(", ")) return expected;
  return { ...expected, headers: { ...expected.headers, "cache-control": got.headers["cache-control"] } };
}
