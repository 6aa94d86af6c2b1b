// The public HTTP cache tests: a case that passed once must not fail later. `npm run conformance` prints the whole table.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ADAPTERS } from "../../../scripts/conformance/adapters.mjs";
import {
  countOutcome,
  OPTIONS,
  quickCases,
  runConformance,
} from "../../../scripts/conformance/conformance.mjs";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { httpCache as fetchCache } from "../../../src/web/fetch.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { XCache } from "../../../src/xcache.ts";

/** Cases that have passed, by their ids. Add to it, never take away. */
const PASSED = JSON.parse(
  readFileSync(join(import.meta.dirname, "conformance-passed.json"), "utf8"),
) as string[];

const SUITE = dirname(createRequire(import.meta.url).resolve("http-cache-tests/package.json"));
const MODULES: Record<string, (options: never) => unknown> = {
  node: nodeCache,
  hono: honoCache,
  fetch: fetchCache,
};

/** What is lost of the cases with these ids on an adapter; the rest must not fail where it is required. */
async function expectPassed(
  adapter: string,
  ids: readonly string[],
  only?: readonly string[],
): Promise<void> {
  await using cache = new XCache({ backend: new MemoryBackend() });
  const { module, open } = ADAPTERS[adapter]!;
  const options = { cache, ...OPTIONS };
  const outcome = await runConformance(
    SUITE,
    (origin: number) => open(MODULES[module] as never, options, origin),
    only,
  );
  const passed = new Set(outcome.filter(({ result }) => result === "passed").map(({ id }) => id));
  const lost = outcome.filter(({ id }) => ids.includes(id) && !passed.has(id));
  expect(lost.map(({ id, result, why }) => `${id}: ${result}, ${why}`)).toEqual([]);
  expect(ids.filter((id) => !passed.has(id))).toEqual([]);
  const [required] = countOutcome(outcome);
  expect(required?.failed).toBe(0);
}

test("every case of the public suite that passed once still passes", () => expectPassed("node", PASSED));

/**
 * The others run on the same responses as node; `npm run conformance` tries them all. The server of Hono replaces the global Request
 * and Response, so it comes last.
 */
const OTHERS = ["http2", "fetch", "hono"];

test.each(OTHERS)("on %s those of them that need no waiting pass as well", async (adapter) => {
  const quick = await quickCases(SUITE);
  await expectPassed(
    adapter,
    PASSED.filter((id) => quick.includes(id)),
    quick,
  );
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
