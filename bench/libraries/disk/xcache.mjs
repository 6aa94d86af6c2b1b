// xcache on disk, in a temporary folder that is removed at the end; `durability` as documented.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DiskBackend, XCache } from "../../../dist/index.js";

export async function open({ ttl, durability = "process" }) {
  const directory = mkdtempSync(join(tmpdir(), "xcache-bench-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  const backend = new DiskBackend({ directory, durability });
  const cache = new XCache({ backend, defaultTtl: ttl, operationTimeout: 10 });
  await cache.connect();
  return {
    get: (key) => cache.get(key),
    set: (key, value) => cache.set(key, value),
    getMany: async (keys) => (await cache.getMany(keys)).values(),
  };
}
