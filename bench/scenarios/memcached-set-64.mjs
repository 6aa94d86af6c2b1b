// set over present keys of memcached, 64 concurrent callers, next to Redis over loopback.

import { atLeast } from "../kv/single-key.mjs";
import { startServer } from "../memcached/server.mjs";
import { scenario as onRedis } from "./kv-set-64.mjs";

export const scenario = {
  ...onRedis,
  libraries: ["memcached/xcache"],
  target: atLeast(4),

  measure(open, seed) {
    const openHere = async ({ url }) => open({ url, memcachedUrl: (await startServer()).url });
    return onRedis.measure(openHere, seed);
  },
};
