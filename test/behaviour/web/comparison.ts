// Runs random handler programs on a server behind the cache and on a bare one, and compares what clients and handlers get.
import fc from "fast-check";
import { afterAll, beforeAll, vi } from "vitest";
import type { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { expectSame } from "../../support/same.ts";
import { type Program, program } from "./programs.ts";
import { type Build, Stage } from "./stages.ts";
import type { Got } from "./wire.ts";

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

/** Two servers for the tests of a suite: a bare one, and one behind `engines`, of which the first is the outermost. */
export class Comparison {
  readonly #bare = new Stage();
  readonly #cached = new Stage();
  #runs = 0;

  constructor(build: Build, engines: () => readonly HTTPCacheMiddleware<never>[]) {
    const { stackTraceLimit } = Error;
    beforeAll(async () => {
      // Express writes there what its handlers threw.
      vi.spyOn(console, "error").mockImplementation(() => {});
      await this.#bare.open(build, []);
      await this.#cached.open(build, engines());
      // Most programs make node throw; nobody reads where.
      Error.stackTraceLimit = 0;
    });
    afterAll(() => {
      Error.stackTraceLimit = stackTraceLimit;
      vi.restoreAllMocks();
      for (const each of this.#stages) each.close();
    });
  }

  get #stages(): readonly Stage[] {
    return [this.#bare, this.#cached];
  }

  /** Throws the difference that the smallest program makes, if one of `count` random ones makes any. */
  async expectSame(count: number): Promise<void> {
    const check = (own: Program): Promise<void> => this.#check(own);
    const programs = fc.sample(program, { seed: SEED, numRuns: count });
    for (let at = 0; at < count; at += AT_ONCE) {
      const outcomes = await Promise.allSettled(programs.slice(at, at + AT_ONCE).map(check));
      const failed = outcomes.findIndex(({ status }) => status === "rejected");
      if (failed < 0) continue;
      // The same one again, alone, to find a small one.
      await fc.assert(fc.asyncProperty(program, check), { seed: SEED, path: String(at + failed) });
      throw new Error("failed only next to others", { cause: outcomes[failed] });
    }
  }

  async #check(own: Program): Promise<void> {
    const [bare, cached] = [this.#bare, this.#cached];
    const path = `/program-${this.#runs++}`;
    const visits = this.#runs % 8 === 0 ? ["first", "second", "third"] : ["first", "second"];
    for (const stage of this.#stages) stage.programs.set(path, own);
    const expected = compared(await bare.ask(path, own.method));
    const trace = await bare.traceOf(path);
    for (const visit of visits) {
      const got = compared(await cached.ask(path, own.method));
      expectSame(got, expectedOf(expected, got), `${visit} visit`);
      // A hit does not run the handler: the trace stays that of the visit that did.
      expectSame(await cached.traceOf(path), trace, `trace of the ${visit} visit`);
    }
    for (const stage of this.#stages) stage.forget(path);
  }
}

/** A lifetime is added where the handler states none; nothing else may differ. */
function expectedOf(expected: Got, got: Got): Got {
  const own = expected.headers["cache-control"] ?? [];
  if (got.headers["cache-control"]?.join(", ") !== [...own, "max-age=60"].join(", ")) return expected;
  return { ...expected, headers: { ...expected.headers, "cache-control": got.headers["cache-control"] } };
}
