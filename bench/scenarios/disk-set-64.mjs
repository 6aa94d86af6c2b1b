// set over present keys on disk, 64 concurrent callers, next to Redis over loopback, which keeps nothing on disk.
import { scenario as onRedis } from "./kv-set-64.mjs";

const { target: _, ...rest } = onRedis;

export const scenario = { ...rest, libraries: ["disk/xcache", "disk/xcache-flushed"] };
