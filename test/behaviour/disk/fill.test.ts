// How full a disk store is.
import { expect, test } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item } from "../../support/opened.ts";

const freshFolder = freshFolders();
const MEGABYTE = 1024 ** 2;

const items = (count: number) =>
  Array.from({ length: count }, (_, at) => item(`key${at}`, Buffer.alloc(10_000)));

test("memory usage grows with what is stored, for every process that has it open, and never exceeds 1", async () => {
  const directory = freshFolder();
  const [backend, other] = [1, 2].map(() => opened({ directory, maxBytes: 4 * MEGABYTE }));
  await Promise.all([backend!.connect(), other!.connect()]);
  expect(await backend!.memoryUsage()).toBeLessThan(0.05);
  await backend!.writeMany(items(150));
  const fill = await backend!.memoryUsage();
  // A large value takes whole pages.
  expect(fill).toBeGreaterThan((150 * 10_000) / (4 * MEGABYTE));
  expect(fill).toBeLessThan(0.6);
  expect(await other!.memoryUsage()).toBe(fill);
  const small = opened({ directory, maxBytes: MEGABYTE });
  await small.connect();
  expect(await small.memoryUsage()).toBe(1);
  await Promise.all([backend!, other!, small].map((each) => each.disconnect()));
});

test("reading memory usage does not open a store that is not open", async () => {
  const backend = opened({ directory: freshFolder() });
  await expect(backend.memoryUsage()).rejects.toMatchObject({ code: "DISCONNECTED" });
  await backend.connect();
  await backend.disconnect();
  await expect(backend.memoryUsage()).rejects.toMatchObject({ code: "DISCONNECTED" });
});

test("memory usage shows in the metrics and the health of a cache", async () => {
  const backend = opened({ directory: freshFolder(), maxBytes: MEGABYTE });
  const cache = new XCache({ backend });
  await cache.setMany(Array.from({ length: 40 }, (_, at) => [`k${at}`, "x".repeat(10_000)] as const));
  const { performanceMetrics } = await cache.detailedHealthCheck();
  expect(performanceMetrics.memoryUsage).toBe(await backend.memoryUsage());
  expect(cache.getComprehensiveMetrics().memoryUsage).toBe(performanceMetrics.memoryUsage);
  expect(performanceMetrics.memoryUsage).toBeGreaterThan(0.1);
  await cache.disconnect();
});
