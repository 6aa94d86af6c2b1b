import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { XCache } from "xcache";
import { check, works } from "./check.mjs";

const folder = mkdtempSync(join(process.cwd(), "disk-"));
const cache = new XCache({ kvUrl: pathToFileURL(folder).href, connectTimeout: 20, operationTimeout: 20 });
await cache.set("key", { n: 1 }, { tags: ["t"] });
check(await cache.get("key"), { n: 1 }, "a value");
await cache.invalidateTags("t");
check((await cache.get("key")) ?? null, null, "an invalidated value");
await cache.disconnect();
works("lmdb");
