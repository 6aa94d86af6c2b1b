// Next's `cacheHandler`: pages, route handlers, `fetch` data and images.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type {
  CacheHandlerContext,
  CacheHandlerValue,
  CacheHandler as NextHandler,
} from "next/dist/server/lib/incremental-cache/index.js";
import { type Clock, performanceClock } from "../../core/clock.ts";
import type { CacheSource } from "../cache-source.ts";
import { type HandlerStore, type NextCacheOptions, openHandlerStore } from "./options.ts";

type GetContext = Parameters<NextHandler["get"]>[1];
type SetContext = Parameters<NextHandler["set"]>[2];
type Value = CacheHandlerValue["value"];
type CacheControl = NonNullable<CacheHandlerValue["cacheControl"]>;

/** The stored form of a Next value. */
interface Stored {
  readonly value: Value;
  readonly lastModified: number;
  readonly cacheControl?: CacheControl;
}

type Kind = "page" | "fetch" | "image";

/** The header in which Next lists the tags of a page or route handler. */
const TAGS_HEADER = "x-next-cache-tags";
/** Upper bound on rendering: a handler that Next keeps beyond one request must not look like an endless render. */
const MAX_RENDER_MS = 60_000;
/** The `revalidate` reported for a page without one that was made stale. */
const STALE_AFTER_SECONDS = 1;

/**
 * The class to export by default from the file that `cacheHandler` names. Throws ConfigError for an invalid configuration
 * or invalid options.
 */
export function nextCacheHandler(
  source: CacheSource,
  options: NextCacheOptions = {},
  clock: Clock = performanceClock,
): new (
  context: CacheHandlerContext,
) => NextHandler {
  const store = openHandlerStore(source, options, clock);
  return class XCacheHandler implements NextHandler {
    readonly #build: string;
    /** Next creates a handler per request, so no render it stores began earlier. */
    readonly #begun = clock.now();

    constructor(context: CacheHandlerContext) {
      this.#build = store.buildId ?? buildIdOf(context.serverDistDir);
    }

    async get(key: string, context: GetContext): Promise<CacheHandlerValue | null> {
      const kind = readKind(context);
      const requiredTags = "softTags" in context || "tags" in context ? requestedTags(context) : [];
      const found = await store.orMiss(() =>
        store.entries.read<Stored>(this.#storeKey(kind, key), requiredTags),
      );
      if (found === undefined) return null;
      return found.isStale ? agedValue(found.data, context, clock.now()) : found.data;
    }

    async set(key: string, value: Value, context: SetContext): Promise<void> {
      const kind = writtenKind(context);
      const storeKey = this.#storeKey(kind, key);
      const now = clock.now();
      const cacheControl = "cacheControl" in context ? context.cacheControl : undefined;
      const stored: Stored = { value, lastModified: now, ...(cacheControl && { cacheControl }) };
      const options = {
        tags: tagsOf(value, context),
        begun: Math.max(this.#begun, now - MAX_RENDER_MS),
        ttl: lifetimeOf(stored, store),
      };
      await store.orMiss(() =>
        value === null && kind === "fetch"
          ? store.entries.remove(storeKey)
          : store.entries.write(storeKey, stored, options),
      );
    }

    /** Rejects unless the store acknowledged the invalidation. */
    async revalidateTag(tags: string | string[], durations?: { expire?: number }): Promise<void> {
      const list = [tags].flat();
      if (list.length === 0) return;
      if (durations === undefined) await store.entries.expire(list);
      else await store.entries.retire(list, durations.expire);
    }

    resetRequestCache(): void {}

    #storeKey(kind: Kind, key: string): string {
      return kind === "page" ? `page:${this.#build}:${key}` : `${kind}:${key}`;
    }
  };
}

function readKind({ kind }: GetContext): Kind {
  const name: string = kind;
  if (name === "FETCH") return "fetch";
  return name === "IMAGE" ? "image" : "page";
}

function writtenKind(context: SetContext): Kind {
  if (context.fetchCache === true) return "fetch";
  const name: string | undefined = "kind" in context ? context.kind : undefined;
  return name === "IMAGE" ? "image" : "page";
}

function requestedTags({ tags = [], softTags = [] }: { tags?: string[]; softTags?: string[] }): string[] {
  return [...new Set([...tags, ...softTags])];
}

function tagsOf(value: Value, context: SetContext): readonly string[] {
  if (context.fetchCache === true) return [...new Set(context.tags ?? [])];
  const header = value !== null && "headers" in value ? value.headers?.[TAGS_HEADER] : undefined;
  return typeof header === "string" ? [...new Set(header.split(",").filter((tag) => tag !== ""))] : [];
}

/** Seconds for which Next may still use the value: pages until `expire`, everything else for `keepStale` past `revalidate`. */
function lifetimeOf({ value, cacheControl }: Stored, { maxAge, keepStale }: HandlerStore): number {
  const revalidate =
    cacheControl?.revalidate ?? (value !== null && "revalidate" in value ? value.revalidate : undefined);
  const expire = cacheControl?.expire;
  if (expire !== undefined) return Math.min(Math.max(expire, revalidate || 0, 1), maxAge);
  return typeof revalidate === "number" ? Math.min(revalidate + keepStale, maxAge) : maxAge;
}

/** The value aged past its `revalidate`, so that Next serves it while it regenerates it. */
function agedValue(stored: Stored, context: GetContext, now: number): CacheHandlerValue {
  const { value, cacheControl, lastModified } = stored;
  if ("revalidate" in context || (value !== null && "revalidate" in value)) {
    const wanted = "revalidate" in context ? context.revalidate : undefined;
    const own = value !== null && "revalidate" in value ? value.revalidate : undefined;
    return { ...stored, lastModified: olderThan(wanted || own || 0, lastModified, now) };
  }
  const revalidate = cacheControl?.revalidate || STALE_AFTER_SECONDS;
  return {
    value,
    cacheControl: { expire: undefined, ...cacheControl, revalidate },
    lastModified: olderThan(revalidate, lastModified, now),
  };
}

const olderThan = (seconds: number, lastModified: number, now: number): number =>
  Math.min(lastModified, now - seconds * 1000 - 1);

const buildIds = new Map<string, string>();

/** The id `next build` gave this server's build: a page refers to files of its own build. `development` without a build. */
function buildIdOf(serverDistDir: string | undefined): string {
  if (serverDistDir === undefined) return "development";
  let id = buildIds.get(serverDistDir);
  if (id === undefined) {
    id = readBuildId(join(serverDistDir, "..", "BUILD_ID"));
    if (id === undefined) return "development";
    buildIds.set(serverDistDir, id);
  }
  return id;
}

function readBuildId(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
