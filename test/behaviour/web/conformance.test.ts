// The public HTTP cache tests: a case that passed once must not fail later. `npm run conformance` prints the whole table.
import { readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { countOutcome, proxyTo, runConformance } from "../../../scripts/conformance/conformance.mjs";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { httpCache } from "../../../src/web/node.ts";
import { XCache } from "../../../src/xcache.ts";

/** Cases that have passed, by their ids. Add to it, never take away. */
const PASSED = JSON.parse(
  readFileSync(join(import.meta.dirname, "conformance-passed.json"), "utf8"),
) as string[];

test("every case of the public suite that passed once still passes", async () => {
  const suite = dirname(createRequire(import.meta.url).resolve("http-cache-tests/package.json"));
  await using cache = new XCache({ backend: new MemoryBackend() });
  // One of the suite's responses has no end but that of its connection, which stays open for seconds.
  const wrap = httpCache({ cache, ttl: 0, cacheNonOk: true, clientDirectives: true, streamAfter: 10 });
  const outcome = await runConformance(suite, (origin: number) => wrap(proxyTo(origin)) as RequestListener);
  const passed = new Set(outcome.filter(({ result }) => result === "passed").map(({ id }) => id));
  const lost = outcome.filter(({ id }) => PASSED.includes(id) && !passed.has(id));
  expect(lost.map(({ id, result, why }) => `${id}: ${result}, ${why}`)).toEqual([]);
  expect(PASSED.filter((id) => !passed.has(id))).toEqual([]);
  const [required] = countOutcome(outcome);
  expect(required?.failed).toBe(0);
});

test("the results page meets the goal and gives a reason for every case that does not pass", () => {
  const page = readFileSync(
    join(import.meta.dirname, "../../../docs/reference/http-conformance.md"),
    "utf8",
  ).split(/^(?=## )/m);
  const newest = page.find((section) => section.startsWith("## The repository")) ?? "";
  const [, required, optimal] = [...newest.matchAll(/^\| (?:kind|required|optimal) \| .*$/gm)].map(([row]) =>
    row.split("|").slice(2).map(Number),
  );
  const [cases = 0, passed = 0, failed = 99] = required ?? [];
  expect(cases).toBeGreaterThanOrEqual(160);
  expect(passed).toBeGreaterThanOrEqual(150);
  expect(failed).toBeLessThanOrEqual(3);
  expect(optimal?.[1]).toBeGreaterThanOrEqual(78);
  expect(page.join("")).not.toContain("unexplained");
});
