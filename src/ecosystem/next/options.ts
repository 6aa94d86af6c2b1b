// The options of both Next cache handlers, and the entries they share.
import { requireOptions } from "../../core/arguments.ts";
import type { Clock } from "../../core/clock.ts";
import type { Duration } from "../../core/duration.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { BackendError, CodecError } from "../../core/errors.ts";
import { type CacheSource, resolveCacheSource } from "../cache-source.ts";
import { TaggedEntries } from "./tagged-entries.ts";

export interface NextCacheOptions {
  /** The namespace of the cache that Next uses; the same for both handlers. Default: `next`. */
  readonly namespace?: string;
  /** Maximum lifetime of any entry. Default: a year. */
  readonly maxAge?: Duration;
  /** How long `fetch` data and images stay servable past their `revalidate` while Next refreshes them. Default: a day. */
  readonly keepStale?: Duration;
  /** Separates the pages of different builds. Default: Next's build id. */
  readonly buildId?: string;
  /** Called when the store failed and Next continued without it. */
  readonly onError?: (error: Error) => void;
}

export interface HandlerStore {
  readonly entries: TaggedEntries;
  readonly maxAge: number;
  readonly keepStale: number;
  readonly buildId: string | undefined;
  /** Runs the operation; resolves to undefined, a miss, if the store fails. */
  orMiss<T>(run: () => Promise<T>): Promise<T | undefined>;
}

const DAY = 86_400;
const YEAR = 365 * DAY;

export function openHandlerStore(source: CacheSource, options: NextCacheOptions, clock: Clock): HandlerStore {
  requireOptions(options, ["namespace", "maxAge", "keepStale", "buildId", "onError"]);
  const { namespace = "next", buildId, onError } = options;
  const maxAge = ttlToMs(options.maxAge ?? YEAR, "maxAge") / 1_000;
  const keepStale = ttlToMs(options.keepStale ?? DAY, "keepStale") / 1_000;
  const cache = resolveCacheSource(source).cache.namespace(namespace);
  return {
    entries: new TaggedEntries(cache, clock, maxAge),
    maxAge,
    keepStale,
    buildId,
    async orMiss(run) {
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

/** Written by another version or another program: treated as absent. */
function isUnreadable(error: unknown): error is CodecError {
  return error instanceof CodecError && (error.code === "FRAME_INVALID" || error.code === "FRAME_VERSION");
}
