// What both cache handlers of Next can be told, and the entries they share.
import { requireOptions } from "../../core/arguments.ts";
import type { Clock } from "../../core/clock.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { BackendError, CodecError } from "../../core/errors.ts";
import { type CacheSource, holdCache } from "../cache-source.ts";
import { TaggedEntries } from "./tagged-entries.ts";

export interface NextCacheOptions {
  /** The part of the cache that Next uses; the same for both handlers. Default: `next`. */
  readonly namespace?: string;
  /** No entry is kept for longer, in seconds. Default: a year. */
  readonly maxAge?: number;
  /** How long data of `fetch` and images are kept past their `revalidate`, to be served while they are made anew. Default: a day. */
  readonly keepStale?: number;
  /** What keeps the pages of one build from another's. Default: the build id of Next. */
  readonly buildId?: string;
  /** Told when the store failed and Next went on without it. */
  readonly onError?: (error: Error) => void;
}

export interface Stock {
  readonly entries: TaggedEntries;
  readonly maxAge: number;
  readonly keepStale: number;
  readonly buildId: string | undefined;
  /** Runs it; where the store fails, gives what stands for nothing. */
  orNothing<T>(run: () => Promise<T>): Promise<T | undefined>;
}

const DAY = 86_400;
const YEAR = 365 * DAY;

export function openStock(source: CacheSource, options: NextCacheOptions, clock: Clock): Stock {
  requireOptions(options, ["namespace", "maxAge", "keepStale", "buildId", "onError"]);
  const { namespace = "next", maxAge = YEAR, keepStale = DAY, buildId, onError } = options;
  ttlToMs(maxAge, "maxAge");
  ttlToMs(keepStale, "keepStale");
  const space = holdCache(source).cache.namespace(namespace);
  return {
    entries: new TaggedEntries(space, clock, maxAge),
    maxAge,
    keepStale,
    buildId,
    async orNothing(run) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof BackendError) && !isUnreadable(error)) throw error;
        onError?.(error);
        return undefined;
      }
    },
  };
}

/** What another version wrote, or somebody else: as good as absent. */
function isUnreadable(error: unknown): error is CodecError {
  return error instanceof CodecError && (error.code === "FRAME_INVALID" || error.code === "FRAME_VERSION");
}
