// The cache is invisible to handlers that use what their framework offers, among real middleware, and to clients that pipeline
// requests, speak HTTP/1.0, or ask for another form of the page.
import { isDeepStrictEqual } from "node:util";
import { gunzipSync } from "node:zlib";
import express from "express";
import express4 from "express-4";
import fc from "fast-check";
import Fastify from "fastify";
import Fastify4 from "fastify-4";
import Koa from "koa";
import Koa2 from "koa-2";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { XCache } from "../../../src/xcache.ts";
import { EXPRESS, FASTIFY, type FrameworkProgram, KOA } from "./framework-programs.ts";
import {
  type BuildFramework,
  buildExpressPrograms,
  buildFastifyPrograms,
  buildKoaPrograms,
  FrameworkStage,
  visit,
} from "./framework-stages.ts";
import type { Asked, Got } from "./wire.ts";

/** None unless asked for: programs that hang a bare server make it slow. */
const PROGRAMS = Number(process.env.XCACHE_TEST_FRAMEWORK_PROGRAMS ?? 0);
const AT_ONCE = 40;
/** To look for a smaller program that fails. */
const SHRINK_MS = 20_000;
/** Fixed, so that a run can be repeated; another one draws other programs. */
const SEED = Number(process.env.XCACHE_TEST_SEED ?? 1);

const FRAMEWORKS: Readonly<Record<string, readonly [BuildFramework, fc.Arbitrary<FrameworkProgram>]>> = {
  "Express 5": [buildExpressPrograms(express), EXPRESS],
  "Express 4": [buildExpressPrograms(express4), EXPRESS],
  "Fastify 5": [buildFastifyPrograms(Fastify, true), FASTIFY],
  "Fastify 4": [buildFastifyPrograms(Fastify4 as never, false), FASTIFY],
  "Koa 3": [buildKoaPrograms(Koa), KOA],
  "Koa 2": [buildKoaPrograms(Koa2), KOA],
};

/** Fields that belong to the cache or to the connection, and how a body is framed. */
const NOT_COMPARED = [
  ...["age", "cache-status", "connection", "content-length", "date", "etag", "keep-alive", "trailer"],
  ...["transfer-encoding", "accept-ranges", "content-range"],
];

function compared(got: Got): Got {
  const headers = { ...got.headers };
  for (const name of NOT_COMPARED) delete headers[name];
  return {
    ...got,
    headers,
    body: headers["content-encoding"]?.[0] === "gzip" ? unpacked(got.body) : got.body,
  };
}

function unpacked(body: string): string {
  try {
    return gunzipSync(Buffer.from(body, "latin1")).toString("latin1");
  } catch {
    // A part of it, or what a hook replaced it with.
    return body;
  }
}

/** A lifetime is added where the handler states none; nothing else may differ. */
function expectedOf(expected: Got, got: Got): Got {
  const own = expected.headers["cache-control"] ?? [];
  if (got.headers["cache-control"]?.join(", ") !== [...own, "max-age=60"].join(", ")) return expected;
  return { ...expected, headers: { ...expected.headers, "cache-control": got.headers["cache-control"] } };
}

/** What a client may also get: a stored page has parts and can be revalidated, whether or not the handler offers that. */
function isAlsoRight(mine: Got, { headers: fields = {} }: Asked, whole: Got): boolean {
  const page = compared(whole);
  const isLike = (other: Got): boolean => isDeepStrictEqual(mine, expectedOf(other, mine));
  if (fields.range !== undefined && page.status === 200) {
    const part = { ...page, status: 206, message: "Partial Content", body: page.body.slice(0, 2) };
    // A page without content has no parts.
    if (page.body === "" && mine.status === 416) return true;
    return isLike(page) || isLike(part);
  }
  if (!Object.keys(fields).some((name) => name.startsWith("if-"))) return false;
  const isSame =
    whole.headers.etag?.[0] === fields["if-none-match"] ||
    (fields["if-modified-since"] !== undefined && whole.headers["last-modified"] !== undefined);
  return isLike(page) || (isSame && mine.status === 304 && mine.body === "");
}

function withoutExpect({ expect: _, ...rest }: Record<string, string>): Record<string, string> {
  return rest;
}

/** Compared with what hung before. */
const NOTHING: Got = { end: "hung", status: 0, message: "", headers: {}, body: "" };

const visits = fc.array(visit, { minLength: 1, maxLength: 3 });

/** Counts what would end the process: some programs do that to a bare server. */
class Crashes {
  count = 0;
  readonly #before = ["uncaughtException", "unhandledRejection"].map((event) => {
    const listeners = process.rawListeners(event);
    process.removeAllListeners(event);
    process.on(event, () => {
      this.count++;
    });
    return [event, listeners] as const;
  });

  restore(): void {
    for (const [event, listeners] of this.#before) {
      process.removeAllListeners(event);
      for (const listener of listeners) process.on(event, listener as () => void);
    }
  }
}

describe.skipIf(PROGRAMS === 0).each(Object.entries(FRAMEWORKS))("on %s", (_name, [build, program]) => {
  const cache = new XCache({ backend: new MemoryBackend() });
  const bare = new FrameworkStage();
  const cached = new FrameworkStage();
  const drawn = fc.tuple(program, visits, fc.boolean());
  let crashes: Crashes;
  beforeAll(async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    crashes = new Crashes();
    await bare.open(build, undefined);
    await cached.open(build, new HTTPCacheMiddleware<never>({ cache, varyCookie: false }));
  });
  afterAll(async () => {
    crashes.restore();
    vi.restoreAllMocks();
    for (const each of [bare, cached]) each.close();
    await cache.disconnect();
  });

  let runs = 0;

  /** Runs all of them bare, then all of them behind the cache, and returns how each of them differs. */
  async function differences(all: readonly (typeof drawn extends fc.Arbitrary<infer One> ? One : never)[]) {
    const first = runs;
    runs += all.length;
    const groups = all.map(([own, others, isDrawn], at) => {
      // What fails after its end destroys a connection on which others may not have left yet.
      const isPipelined = isDrawn && !own.steps.some(([name]) => name.startsWith("raw."));
      const path = `/${own.place}/program-${first + at}`;
      for (const stage of [bare, cached]) stage.programs.set(path, own);
      const plain: Asked = { path, method: "GET" };
      const more = others.map(({ query, ...one }) => ({ ...one, path: path + query }));
      // HTTP/1.0 has no pipelining, and node writes 100 Continue into a response that is ready before its turn has come.
      if (isPipelined)
        for (const one of more) Object.assign(one, { version: "1.1", headers: withoutExpect(one.headers) });
      const asked: Asked[] = [plain, plain, ...more, plain];
      return isPipelined ? [asked] : asked.map((one) => [one]);
    });
    const askAll = async (stage: FrameworkStage): Promise<Got[][]> => {
      const askEach = async (each: Asked[][]): Promise<Got[]> => {
        const got: Got[] = [];
        for (const group of each) {
          got.push(...(await stage.ask(group)).map(compared));
          // Waiting for it again would take long and show nothing new.
          if (got.at(-1)!.end === "hung") break;
        }
        return got;
      };
      return Promise.all(groups.map(askEach));
    };
    const before = crashes.count;
    const expected = await askAll(bare);
    const between = crashes.count;
    const got = await askAll(cached);
    const after = crashes.count;
    // Of a page that is stored the handler runs once.
    expect(after - between, "crashes behind the cache").toBeLessThanOrEqual(between - before);
    const check = async (at: number): Promise<void> => {
      for (const [index, one] of groups[at]!.flat().entries()) {
        const mine = got[at]![index];
        if (mine === undefined) break;
        const wanted = expectedOf(expected[at]![index] ?? NOTHING, mine);
        if (isDeepStrictEqual(mine, wanted)) continue;
        const [whole] = await bare.ask([{ ...one, headers: {} }]);
        if (!isAlsoRight(mine, one, whole!)) expect(mine, JSON.stringify([index, one])).toEqual(wanted);
      }
    };
    const outcomes = await Promise.allSettled(all.map((_, at) => check(at)));
    for (const stage of [bare, cached]) stage.programs.clear();
    return outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason : undefined));
  }

  test("any program gives every client the same responses", async () => {
    const all = fc.sample(drawn, { seed: SEED, numRuns: PROGRAMS });
    for (let at = 0; at < PROGRAMS; at += AT_ONCE) {
      const failures = await differences(all.slice(at, at + AT_ONCE));
      const failed = failures.findIndex((failure) => failure !== undefined);
      if (failed < 0) continue;
      // The same one again, alone, to find a small one.
      const alone = fc.asyncProperty(drawn, async (one) => {
        const [failure] = await differences([one]);
        if (failure !== undefined) throw failure;
      });
      await fc.assert(alone, { seed: SEED, path: String(at + failed), interruptAfterTimeLimit: SHRINK_MS });
      throw new Error("failed only next to others", { cause: failures[failed] });
    }
  });
});
