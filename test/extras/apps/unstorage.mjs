import { createStorage } from "unstorage";
import { XCache } from "xcache";
import { unstorageDriver } from "xcache/ecosystem/unstorage";
import { check, works } from "./check.mjs";

const storage = createStorage({ driver: unstorageDriver(new XCache({ kvUrl: "memory://" })) });
await storage.setItem("a:b", { n: 1 });
check(await storage.getItem("a:b"), { n: 1 }, "an item");
check(await storage.getKeys("a"), ["a:b"], "keys");
await storage.removeItem("a:b");
check(await storage.hasItem("a:b"), false, "a removed item");
works("unstorage");
