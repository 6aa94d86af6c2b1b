// A store on disk for a test, filled by the library itself.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type CacheConfig, XCache } from "../../../src/index.ts";
import { runFolder } from "../../support/run-folder.ts";

/** A folder that is removed after the tests of the file. */
export function testFolder(): string {
  const folder = mkdtempSync(join(runFolder(), "cli-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const diskUrl = (folder: string, name = "store"): string => `file://${join(folder, name)}`;

/** Uses a cache and closes it, so that the program finds what is stored, not what this process holds. */
export async function withCache<T>(config: CacheConfig, work: (cache: XCache) => Promise<T>): Promise<T> {
  const cache = new XCache({ enableMetrics: false, operationTimeout: 30, ...config });
  try {
    return await work(cache);
  } finally {
    await cache.disconnect();
  }
}
