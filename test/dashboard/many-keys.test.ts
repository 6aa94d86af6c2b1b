// The list of keys over many entries on a real Redis: first rows after one step of the scan, every entry looked at once, and
// memory that does not grow with them. `npm run test:keys` does it with a million.
import { expect, onTestFinished, test } from "vitest";
import { dashboard } from "../../src/dashboard/index.ts";
import { XCache } from "../../src/index.ts";
import { soon } from "../support/pace.ts";
import { startRedis } from "../support/redis.ts";

const KEYS = Number(process.env.XCACHE_TEST_KEYS ?? 4_000);
/** A step of SCAN may return a few more than it was asked for. */
const STEP = 1_200;
const BATCH = 2_000;

interface Line {
  readonly entries?: readonly unknown[];
  readonly scanned: number;
  readonly done?: boolean;
}

test(`the first rows of ${KEYS} keys come after one step, and a whole scan holds none of them`, {
  timeout: 60_000 + KEYS,
}, async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const cache = new XCache({ kvUrl: server.url, keyPrefix: "shop", operationTimeout: 30 });
  onTestFinished(() => cache.disconnect());
  for (let from = 0; from < KEYS; from += BATCH) {
    const batch = Array.from(
      { length: Math.min(BATCH, KEYS - from) },
      (_, at) => [`k:${from + at}`, at] as const,
    );
    await cache.setMany(batch, { ttl: 3_600, tags: [`t:${from % 7}`] });
  }
  const board = dashboard({ cache, authorize: () => true });
  const lines = async function* (body: object): AsyncGenerator<Line> {
    const request = new Request("http://admin.example/api/keys", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const stream = (await board.fetch(request)).body as ReadableStream<Uint8Array>;
    let rest = "";
    for await (const part of stream) {
      const texts = (rest + Buffer.from(part).toString()).split("\n");
      rest = texts.pop() ?? "";
      for (const text of texts) yield JSON.parse(text) as Line;
    }
  };

  const began = performance.now();
  const rows: Line[] = [];
  let firstMs = 0;
  for await (const line of lines({ limit: 100 })) {
    if (rows.length === 0) firstMs = performance.now() - began;
    rows.push(line);
  }
  expect(rows[0]?.entries?.length).toBeGreaterThan(0);
  expect(rows[0]?.scanned).toBeLessThan(STEP);
  expect(rows.at(-1)).toMatchObject({ done: false });

  const before = process.memoryUsage().rss;
  let most = before;
  let last: Line | undefined;
  for await (const line of lines({ match: "nothing*" })) {
    most = Math.max(most, process.memoryUsage().rss);
    last = line;
  }
  expect(last?.done).toBe(true);
  expect(last?.scanned).toBeGreaterThanOrEqual(KEYS);
  if (process.env.XCACHE_TEST_KEYS === undefined) return;
  const grownMb = (most - before) / 2 ** 20;
  console.log(
    `${KEYS} keys: first rows after ${firstMs.toFixed(0)} ms, memory grown by ${grownMb.toFixed(0)} MB`,
  );
  expect(firstMs).toBeLessThan(soon(1_000));
  expect(grownMb).toBeLessThan(150);
});
