import { createCache } from "cache-manager";
import { XCache } from "xcache";
import { cacheManagerStore } from "xcache/ecosystem/cache-manager";
import { check, works } from "./check.mjs";

const cache = createCache({ stores: [cacheManagerStore(new XCache({ kvUrl: "memory://" }))] });
let loads = 0;
const load = () => cache.wrap("key", async () => ({ at: new Date(++loads) }), 60_000);
check([await load(), await load()], [{ at: new Date(1) }, { at: new Date(1) }], "wrap");
check((await cache.get("key")).at instanceof Date, true, "a Date stays one");
await cache.clear();
check((await cache.get("key")) ?? null, null, "a value after clear()");
works("cache-manager", "keyv");
