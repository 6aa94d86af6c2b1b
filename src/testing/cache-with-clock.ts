// A cache that reads time from a given clock.
import { sharedCode } from "../cache/deferred-store.ts";
import { openScope } from "../cache/lifecycle.ts";
import * as openShared from "../cache/open-shared.ts";
import type { CacheConfig } from "../config/types.ts";
import { requireClock } from "../core/arguments.ts";
import type { Clock } from "../core/clock.ts";
import { XCache } from "../xcache.ts";

/** A cache that reads time from `clock`. It loads no code later: that would take real time, in which `clock` may move on. */
export function cacheWithClock(config: CacheConfig, clock: Clock): XCache {
  requireClock(clock);
  sharedCode.loaded ??= openShared;
  return new XCache(openScope(config, clock) as CacheConfig);
}
