// The cache is invisible to fetch and Hono handlers: random responses are the same behind it as without it.
import fc from "fast-check";
import { Hono } from "hono";
import { afterAll, describe, test } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { type FetchHandler, httpCache as fetchCache } from "../../../src/web/fetch.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { XCache } from "../../../src/xcache.ts";
import { expectSame } from "../../support/same.ts";
import { until } from "../../support/until.ts";

const PROGRAMS = Number(process.env.XCACHE_TEST_PROGRAMS ?? 2_000);
const AT_ONCE = 20;
/** Fixed, so that a run can be repeated; another one draws other programs. */
const SEED = Number(process.env.XCACHE_TEST_SEED ?? 1);

type Chunk = string | Uint8Array;

type Body =
  | { readonly kind: "none" }
  | { readonly kind: "given"; readonly value: Chunk }
  | {
      readonly kind: "stream";
      readonly chunks: readonly Chunk[];
      readonly waits: boolean;
      readonly fails: boolean;
    }
  | { readonly kind: "endless" };

interface Program {
  readonly method: string;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Body;
  readonly throws: boolean;
}

const bytes = fc.constantFrom(new Uint8Array(), new Uint8Array([0, 255, 128]), Buffer.from("bytes"));
const text = fc.constantFrom("", "abc", "ä€", "x".repeat(3_000));
/** Streams of text are not what a Response should have, yet some servers send them. */
const chunk: fc.Arbitrary<Chunk> = fc.oneof({ weight: 8, arbitrary: bytes }, fc.constantFrom("abc", ""));

const body: fc.Arbitrary<Body> = fc.oneof(
  fc.constant<Body>({ kind: "none" }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("given" as const), value: fc.oneof(text, bytes) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("stream" as const),
      chunks: fc.array(chunk, { maxLength: 4 }),
      waits: fc.boolean(),
      fails: fc.constantFrom(false, false, true),
    }),
  },
  fc.constant<Body>({ kind: "endless" }),
);

const field = fc.oneof(
  fc.tuple(fc.constant("set-cookie"), fc.constantFrom("a=1", "b=2; Path=/")),
  fc.tuple(fc.constant("cache-control"), fc.constantFrom("max-age=60", "no-store", "private")),
  fc.tuple(fc.constant("vary"), fc.constantFrom("accept", "*")),
  fc.tuple(fc.constantFrom("x-a", "content-type", "link"), fc.constantFrom("one", "two", "text/plain")),
);

const program: fc.Arbitrary<Program> = fc.record({
  method: fc.constantFrom("GET", "GET", "GET", "GET", "HEAD", "POST"),
  status: fc.constantFrom(200, 200, 200, 200, 201, 204, 205, 301, 304, 404, 500, 503),
  headers: fc.array(field, { maxLength: 4 }),
  body,
  throws: fc.constantFrom(false, false, false, false, false, false, false, true),
});

const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

/** One application that responds as the program of the path says. */
class Stage {
  readonly programs = new Map<string, Program>();
  /** Streams without an end that nobody has cancelled. */
  endless = 0;

  respond(url: string): Response {
    const { status, headers, body, throws } = this.programs.get(new URL(url).pathname)!;
    if (throws) throw new Error("thrown by the handler");
    return new Response(this.#bodyOf(body) as string | null, {
      status,
      headers: headers as [string, string][],
    });
  }

  #bodyOf(body: Body): unknown {
    if (body.kind === "none") return null;
    if (body.kind === "given") return body.value;
    if (body.kind === "endless") return this.#endless();
    const chunks = [...body.chunks];
    return new ReadableStream({
      async pull(controller) {
        if (body.waits) await turn();
        const next = chunks.shift();
        if (next !== undefined) controller.enqueue(next);
        else if (body.fails) controller.error(new Error("failed on purpose"));
        else controller.close();
      },
    });
  }

  #endless(): ReadableStream {
    let isBegun = false;
    return new ReadableStream(
      {
        pull: async (controller) => {
          if (!isBegun) this.endless++;
          isBegun = true;
          await turn();
          controller.enqueue(Buffer.from("more "));
        },
        cancel: () => {
          if (isBegun) this.endless--;
        },
      },
      { highWaterMark: 0 },
    );
  }
}

interface Got {
  readonly end: "whole" | "broken" | "left" | "threw";
  readonly status?: number;
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** Fields that belong to the cache, and how a body is framed. */
const NOT_COMPARED = new Set(["age", "cache-status", "content-length", "date", "etag"]);
const ENOUGH = "more more ";

async function read(responding: () => Response | Promise<Response>): Promise<Got> {
  let response: Response;
  try {
    response = await responding();
  } catch {
    return { end: "threw" };
  }
  const { status } = response;
  const headers = [...response.headers]
    .filter(([name]) => !NOT_COMPARED.has(name))
    .map(([name, value]) => `${name}: ${value}`);
  let body = "";
  const reader = response.body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done) return { end: "whole", status, headers, body };
      body += typeof value === "string" ? value : Buffer.from(value).toString("latin1");
      if (!body.startsWith(ENOUGH)) continue;
      await reader?.cancel();
      return { end: "left", status, headers, body: ENOUGH };
    }
  } catch {
    // How much arrives before the failure is up to the queues between.
    return { end: "broken", status, headers };
  }
}

/** A lifetime is added where the handler states none; nothing else may differ. */
function expectedOf(expected: Got, got: Got): Got {
  const added = got.headers?.includes("cache-control: max-age=60");
  if (!added || expected.headers?.some((line) => line.startsWith("cache-control:"))) return expected;
  return { ...expected, headers: [...expected.headers!, "cache-control: max-age=60"].sort() };
}

type Engine = HTTPCacheMiddleware<never>;

/** `engines`: the caches around the application, from the outermost. */
type Build = (stage: Stage, engines: readonly Engine[]) => FetchHandler;

const engine = (cache: XCache): Engine =>
  new HTTPCacheMiddleware<never>({ cache, varyCookie: false, maxBodyBytes: 10_000 });

/** The caches around an application, for two stores. */
const STACKS: Record<string, (one: XCache, other: XCache) => readonly Engine[]> = {
  "one cache": (one) => [engine(one)],
  "one cache that is registered twice": (one) => {
    const own = engine(one);
    return [own, own];
  },
  "two caches with one store": (one) => [engine(one), engine(one)],
  "two caches with a store each": (one, other) => [engine(one), engine(other)],
};

const ADAPTERS: Record<string, Build> = {
  fetch: (stage, engines) => {
    const handler: FetchHandler = async (request) => stage.respond(request.url);
    return engines.reduceRight((inner, own) => fetchCache(own as never)(inner), handler);
  },
  hono: (stage, engines) => {
    const app = new Hono();
    for (const own of engines) app.use(honoCache(own as never, app));
    app.all("*", (context) => stage.respond(context.req.url));
    app.onError((_error, context) => context.text("failed", 500));
    return (request) => app.fetch(request);
  },
};

let stacks = 0;

describe.each(Object.entries(ADAPTERS))("on %s", (_, build) => {
  const [one, other] = [1, 2].map(() => new XCache({ backend: new MemoryBackend() }));
  afterAll(() => Promise.all([one!.disconnect(), other!.disconnect()]));

  test.each(Object.entries(STACKS))(
    "with %s any response is the same on every visit, and an endless one is cancelled",
    async (name, stack) => {
      const [bare, cached] = [new Stage(), new Stage()];
      const [ask, askCached] = [build(bare, []), build(cached, stack(one!, other!))];
      const programs = name === "one cache" ? PROGRAMS : PROGRAMS / 5;
      let runs = 0;
      stacks++;
      const check = async (own: Program): Promise<void> => {
        const path = `/${stacks}/program-${runs++}`;
        for (const stage of [bare, cached]) stage.programs.set(path, own);
        const request = (): Request => new Request(`http://site.test${path}`, { method: own.method });
        const expected = await read(() => ask(request()));
        for (const visit of ["first", "second", "third"]) {
          const got = await read(() => askCached(request()));
          const wanted = expectedOf(expected, got);
          expectSame(
            { ...got, headers: got.headers?.toSorted() },
            { ...wanted, headers: wanted.headers?.toSorted() },
            `${visit} visit`,
          );
        }
      };
      const property = fc.asyncProperty(
        fc.array(program, { minLength: 1, maxLength: AT_ONCE, size: "max" }),
        async (all) => {
          const outcomes = await Promise.allSettled(all.map(check));
          for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
        },
      );
      await fc.assert(property, { numRuns: Math.ceil((2 * programs) / AT_ONCE), seed: SEED });
      await until(() => cached.endless === bare.endless, { what: "endless streams are cancelled" });
    },
  );
});
