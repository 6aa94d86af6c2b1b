// Web stream bodies are passed on immediately, stored only if complete, and limited in size.
import { Readable } from "node:stream";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import type { HttpCacheOptions } from "../../../src/web/engine/options.ts";
import { httpCache as fetchCache } from "../../../src/web/fetch.ts";
import { observed } from "../../../src/web/fetch-api/fetch-body.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { memoryCache } from "../../behaviour/cache/memory-cache.ts";
import { ask, bridge, listen } from "../../behaviour/web/subject.ts";
import { until } from "../../support/until.ts";

type Options = Pick<HttpCacheOptions, "maxBodyBytes" | "streamAfter">;

type Cached = (
  handler: () => Response,
  options?: Options,
) => (request: Request) => Response | Promise<Response>;

const cachedFetch: Cached = (handler, options = {}) =>
  fetchCache({ cache: memoryCache().cache, ...options })(handler);

const cachedHono: Cached = (handler, options = {}) => {
  const app = new Hono();
  app.use(honoCache({ cache: memoryCache().cache, ...options }));
  app.get("*", handler);
  return app.fetch;
};

describe.each([
  ["fetch", cachedFetch],
  ["hono", cachedHono],
] as const)("on %s", (_, cached) => {
  const chunks = (
    parts: readonly string[],
    gate: Promise<void> = Promise.resolve(),
  ): ReadableStream<Uint8Array> => {
    let at = 0;
    return new ReadableStream(
      {
        async pull(controller) {
          if (at > 0) await gate;
          if (at === parts.length) controller.close();
          else controller.enqueue(new TextEncoder().encode(parts[at++]));
        },
      },
      { highWaterMark: 0 },
    );
  };

  test("a stream reaches the client before it ends, and is stored completely", async () => {
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let calls = 0;
    const handler = cached(() => {
      calls++;
      return new Response(chunks(["first ", "last"], gate));
    });
    const reader = (await handler(new Request("http://site.test/"))).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("first ");
    open();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("last");
    expect((await reader.read()).done).toBe(true);
    const second = await handler(new Request("http://site.test/"));
    expect([await second.text(), calls]).toEqual(["first last", 1]);
  });

  test("a client's cancellation affects no one else: the rest is read and stored", async () => {
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let calls = 0;
    const handler = cached(() => {
      calls++;
      return new Response(chunks(["first ", "last"], gate));
    });
    const leaving = await handler(new Request("http://site.test/"));
    const other = handler(new Request("http://site.test/"));
    await leaving.body!.cancel();
    open();
    expect([await (await other).text(), calls]).toEqual(["first last", 1]);
  });

  test("a failing stream is not stored, and fails for its client", async () => {
    let calls = 0;
    const handler = cached(() => {
      calls++;
      return new Response(chunks(["first "], Promise.reject(new Error("broken"))));
    });
    for (let time = 0; time < 2; time++) {
      const response = await handler(new Request("http://site.test/"));
      await expect(response.text()).rejects.toThrow("broken");
    }
    expect(calls).toBe(2);
  });

  describe("a stream that stays open", () => {
    /** Counts the streams, and those that were cancelled. */
    const endless = (options: Options) => {
      const seen = { calls: 0, cancelled: [] as unknown[] };
      const handler = cached(() => {
        seen.calls++;
        return new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(new TextEncoder().encode(`first ${seen.calls}`)),
            cancel: (reason) => void seen.cancelled.push(reason),
          }),
        );
      }, options);
      return { seen, visit: async () => (await handler(new Request("http://site.test/"))).body!.getReader() };
    };
    const textOf = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> =>
      new TextDecoder().decode((await reader.read()).value);

    test("other requests call the handler themselves", async () => {
      const { visit } = endless({ streamAfter: 0.02 });
      const readers = await Promise.all([visit(), visit(), visit()]);
      expect(await Promise.all(readers.map(textOf))).toEqual(["first 1", "first 2", "first 3"]);
      await Promise.all(readers.map((reader) => reader.cancel()));
    });

    test("is cancelled when its client cancels, at the latest when it counts as a stream", async () => {
      const { seen, visit } = endless({ streamAfter: 0.02 });
      const [early, late] = [await visit(), await visit()];
      await early.cancel("early");
      await until(() => seen.cancelled.length === 1, { what: "the first cancellation" });
      await late.cancel("late");
      await until(() => seen.cancelled.length === 2, { what: "the second cancellation" });
      expect(seen).toEqual({ calls: 2, cancelled: ["early", "late"] });
    });

    test("is cancelled as soon as nothing else can be made of it", async () => {
      const { seen, visit } = endless({ maxBodyBytes: 3 });
      await (await visit()).cancel("gone");
      await until(() => seen.cancelled.length === 1, { what: "the cancellation" });
      expect(seen.cancelled).toEqual(["gone"]);
    });
  });

  test("a stream of text, which only some servers send, is passed on and not stored", async () => {
    let calls = 0;
    const handler = cached(() => {
      const parts = [`call ${++calls}`, " and more"];
      return new Response(Readable.toWeb(Readable.from(parts)) as ReadableStream<Uint8Array>);
    });
    const bodies: unknown[] = [];
    for (let time = 0; time < 2; time++) {
      const response = await handler(new Request("http://site.test/"));
      let body = "";
      for await (const part of response.body as AsyncIterable<unknown>) body += part;
      bodies.push(body);
    }
    expect(bodies).toEqual(["call 1 and more", "call 2 and more"]);
  });

  test("a body larger than maxBodyBytes passes through completely and is not stored", async () => {
    let calls = 0;
    const handler = cached(
      () => {
        calls++;
        return new Response(chunks(["12345", "67890", "abc"]));
      },
      { maxBodyBytes: 8 },
    );
    for (let time = 0; time < 2; time++) {
      expect(await (await handler(new Request("http://site.test/"))).text()).toBe("1234567890abc");
    }
    expect(calls).toBe(2);
  });

  test("over a socket as well", async () => {
    const handler = cached(() => new Response(chunks(["a", "b"])));
    const port = await listen(bridge(async (request) => handler(request)));
    expect([(await ask(port, "/")).body, (await ask(port, "/")).body]).toEqual(["ab", "ab"]);
  });
});

test("further arguments reach the handler", async () => {
  const handler = fetchCache({ cache: memoryCache().cache })(
    (_request: Request, environment: { name: string }) => new Response(environment.name),
  );
  expect(await (await handler(new Request("http://site.test/"), { name: "env" })).text()).toBe("env");
});

test("an error response is passed on, and no request waits for it", async () => {
  let calls = 0;
  const handler = fetchCache({ cache: memoryCache().cache })(() => {
    calls++;
    return Response.error();
  });
  const answers = await Promise.all([1, 2].map(() => handler(new Request("http://site.test/"))));
  expect(answers.map(({ type }) => type)).toEqual(["error", "error"]);
  expect(calls).toBe(2);
});

test("a client that reads only after the source has ended and was stored gets every chunk, and the end is reported once", async () => {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let ends = 0;
  let aborts = 0;
  const tap = {
    wantsWhole: false,
    released,
    head: () => ({ head: undefined, wantsBody: true }),
    chunk: () => true,
    end: () => {},
    abort: () => {
      aborts++;
    },
  };
  const stored = (): void => {
    ends++;
    release();
  };
  const body = observed(new Response("one two three".repeat(10)).body!, tap, stored);
  await until(() => ends > 0, { what: "the source has ended" });
  expect(await new Response(body).text()).toBe("one two three".repeat(10));
  expect({ ends, aborts }).toEqual({ ends: 1, aborts: 0 });
});
