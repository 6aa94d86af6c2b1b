// The HTTP cache on a real Redis: two caches share responses and invalidations, and a frozen server is bypassed.
import { describe, expect, test } from "vitest";
import { soon } from "../../support/pace.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";
import { ADAPTERS, counting, type Subject, subject } from "./subject.ts";

const DEADLINE_SECONDS = 1;

const caches = redisCaches({
  operationTimeout: DEADLINE_SECONDS,
  circuitBreaker: { failureThreshold: 2, resetTimeout: 600 },
});

/** Seconds that a request takes, and its body. */
async function timed({ ask }: Subject, path: string): Promise<{ seconds: number; body: string }> {
  const started = performance.now();
  const { body } = await ask(path);
  return { seconds: (performance.now() - started) / 1_000, body };
}

describe.each(ADAPTERS)("on %s", (adapter) => {
  test.each([false, true])("responses and invalidations are shared (near copies: %s)", async (nearCache) => {
    const bytes = Uint8Array.from({ length: 500 }, (_, at) => at % 256);
    const pages = [counting({ "cache-tag": "product:7", vary: "accept" }), () => ({ body: bytes })];
    const open = (): Promise<Subject> =>
      subject(adapter, (seen) => pages[seen.url === "/bytes" ? 1 : 0]!(seen), {
        cache: caches.open({ nearCache }),
        tags: ["pages"],
      });
    const [one, other] = [await open(), await open()];
    const first = await one.ask("/page");
    await one.ask("/bytes");
    const second = await other.ask("/page");
    expect([second.body, second.headers.etag]).toEqual(["answer 1", first.headers.etag]);
    expect(second.headers["cache-status"]).toContain("hit");
    expect(Buffer.compare((await other.ask("/bytes")).bytes, bytes)).toBe(0);
    expect(other.calls).toHaveLength(0);
    for (const tag of ["product:7", "pages"]) {
      await other.cache.invalidateTags(tag);
      const calls = one.calls.length;
      // A near copy is dropped when the server's word of it has come.
      await until(async () => (await one.ask("/page")).headers["cache-status"]!.includes("fwd="), {
        what: tag,
      });
      expect(one.calls).toHaveLength(calls + 1);
      const { headers } = await other.ask("/page");
      expect(headers["cache-status"]).toContain("hit");
    }
    // The URL itself: an unsafe request to one is known to the other.
    await other.ask("/page", { method: "POST" });
    await until(async () => (await one.ask("/page")).headers["cache-status"]!.includes("fwd="), {
      what: "the page that was changed",
    });
  });
});

test.each(ADAPTERS)(
  "on %s a frozen server costs one deadline, and no time once the circuit is open",
  async (adapter) => {
    const made = await subject(adapter, counting(), { cache: caches.open() });
    await made.ask("/warm");
    expect((await made.ask("/warm")).headers["cache-status"]).toContain("hit");
    caches.server.freeze();
    try {
      const first = await timed(made, "/warm");
      expect(first.body).toBe("answer 2");
      expect(first.seconds).toBeLessThan(soon(1.9 * DEADLINE_SECONDS));
      await until(async () => (await timed(made, "/open")).seconds < DEADLINE_SECONDS, {
        what: "an open circuit",
      });
      // Whoever asks the server waits for the whole deadline; whoever waits for less has not asked.
      for (let at = 0; at < 10; at++) {
        const { seconds, body } = await timed(made, `/${at}`);
        expect(seconds).toBeLessThan(soon(DEADLINE_SECONDS));
        expect(body).toBe(`answer ${made.calls.length}`);
      }
    } finally {
      caches.server.thaw();
    }
  },
);
