// A store that fails, hangs or is full never changes the client's response.
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { cacheWithClock, ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { httpCache } from "../../../src/web/fetch.ts";
import { XCache } from "../../../src/xcache.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ADAPTERS, counting, subject } from "./subject.ts";

function chaos(clock: Clock = systemClock): { store: ChaosBackend; cache: XCache } {
  const store = new ChaosBackend(new ReferenceBackend(new ReferenceStore(clock)), { clock });
  const cache = cacheWithClock({ backend: store, operationTimeout: 1 }, clock);
  return { store, cache };
}

describe.each(ADAPTERS)("on %s", (adapter) => {
  test("a failing store is bypassed", async () => {
    const { store, cache } = chaos();
    store.fail("all", new ConnectionError("gone"));
    const { ask } = await subject(adapter, counting({ "x-a": "1" }), { cache });
    for (const call of [1, 2, 3]) {
      const answer = await ask("/");
      expect([answer.status, answer.body, answer.headers["x-a"]]).toEqual([200, `answer ${call}`, "1"]);
    }
    for (const method of ["HEAD", "POST"]) expect((await ask("/", { method })).status).toBe(200);
    store.calm();
  });

  test("a response too large for the store is still served", async () => {
    const { MemoryBackend } = await import("../../../src/backends/memory/backend.ts");
    const cache = new XCache({ backend: new MemoryBackend({ maxBytes: 2_000 }) });
    const { ask } = await subject(adapter, () => ({ body: "x".repeat(5_000) }), { cache });
    for (let time = 0; time < 2; time++) expect((await ask("/")).body).toHaveLength(5_000);
  });

  test("a shared store holds the same responses", async () => {
    const { cache } = chaos();
    const bytes = Uint8Array.from({ length: 600 }, (_, at) => (at * 7) % 256);
    const { ask, calls } = await subject(adapter, ({ url }) => ({ body: url === "/b" ? bytes : "text é" }), {
      cache,
    });
    for (const path of ["/t", "/b"]) {
      const [first, second] = [await ask(path), await ask(path)];
      expect(Buffer.compare(first.bytes, second.bytes)).toBe(0);
      expect(second.headers["cache-status"]).toContain("hit");
    }
    expect(calls).toHaveLength(2);
  });
});

test("a hanging store delays each request by one deadline, and not at all once the circuit is open", async () => {
  const clock = new ManualClock();
  const { store, cache } = chaos(clock);
  const handler = httpCache(new HTTPCacheMiddleware<Request>({ cache }, clock))(() => new Response("page"));
  const get = (path: string) => handler(new Request(`http://site.test${path}`));
  await get("/warm");
  store.hang();
  const waits: number[] = [];
  for (let time = 0; time < 8; time++) {
    let isAnswered = false;
    const answer = get(`/${time}`).then((response) => {
      isAnswered = true;
      return response.text();
    });
    await clock.advance(0);
    const started = clock.now();
    while (!isAnswered) await clock.advance(100);
    waits.push(clock.now() - started);
    expect(await answer).toBe("page");
  }
  expect(waits[0]).toBe(1_000);
  expect(Math.max(...waits)).toBe(1_000);
  expect(waits.slice(-3)).toEqual([0, 0, 0]);
  store.resume();
  onTestFinished(() => cache.disconnect());
});

test("a disconnected cache is bypassed", async () => {
  const { cache } = memoryCache();
  await cache.disconnect();
  const handler = httpCache({ cache })(() => new Response("the page"));
  expect(await (await handler(new Request("http://site.test/"))).text()).toBe("the page");
});

test("a throwing callback stores nothing, changes nothing and is counted", async () => {
  const broken = (): never => {
    throw new Error("broken");
  };
  for (const options of [
    { ttl: broken },
    { tags: broken },
    { shouldStore: broken },
    { skip: broken },
    { ttl: () => Number.NaN },
    // A promise would count for a yes.
    { skip: (async () => false) as never },
    { shouldStore: (async () => false) as never },
    { shouldStore: (async () => broken()) as never },
  ]) {
    const { cache } = memoryCache();
    const errors: Error[] = [];
    let calls = 0;
    const engine = new HTTPCacheMiddleware<Request>({
      cache,
      ...options,
      onError: (error) => errors.push(error),
    });
    const handler = httpCache(engine)(() => new Response(`answer ${++calls}`));
    const get = async () => (await handler(new Request("http://site.test/"))).text();
    for (const answer of ["answer 1", "answer 2"]) {
      expect(await get()).toBe(answer);
      // The tags are asked for when the body has ended, which the client may know first: the next request would wait
      // for this one, and then run its handler without asking for any.
      await settle();
    }
    expect(errors).toHaveLength(2);
    expect(engine.counts.errors).toBe(2);
  }
});

test("errors thrown by listeners are ignored", async () => {
  const { cache } = memoryCache();
  const broken = (): never => {
    throw new Error("broken");
  };
  const handler = httpCache({ cache, onHit: broken, onMiss: broken, onStore: broken, onError: broken })(
    () => new Response("x"),
  );
  for (let time = 0; time < 2; time++) {
    expect(await (await handler(new Request("http://site.test/"))).text()).toBe("x");
  }
});

test("rejecting listeners are counted and do not crash the process", async () => {
  const { cache } = memoryCache();
  const broken = (async () => {
    throw new Error("broken");
  }) as () => void;
  const engine = new HTTPCacheMiddleware<Request>({
    cache,
    onHit: broken,
    onMiss: broken,
    onStore: broken,
    onError: broken,
  });
  const handler = httpCache(engine)(() => new Response("x"));
  for (let time = 0; time < 2; time++) await handler(new Request("http://site.test/"));
  await settle();
  expect(engine.counts.errors).toBe(3);
});

test("hits, misses and stores are reported to listeners and counted", async () => {
  const { cache } = memoryCache();
  const told: string[] = [];
  const engine = new HTTPCacheMiddleware<Request>({
    cache,
    onHit: ({ key, request }) => told.push(`hit ${key} ${request.method}`),
    onMiss: ({ key }) => told.push(`miss ${key}`),
    onStore: ({ key }) => told.push(`store ${key}`),
    skip: (request) => request.url.endsWith("/skipped"),
  });
  const handler = httpCache(engine)(() => new Response("x"));
  for (const path of ["a", "a", "skipped"]) await handler(new Request(`http://site.test/${path}`));
  const key = "web:http 9:site.test/a";
  expect(told).toEqual([`miss ${key}`, `store ${key}`, `hit ${key} GET`]);
  expect(engine.counts).toEqual({ hits: 1, misses: 1, stores: 1, bypasses: 1, errors: 0 });
});
