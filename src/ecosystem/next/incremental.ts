// `cacheHandler` of Next 16: pages, route handlers, data of `fetch` and images.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type {
  CacheHandlerContext,
  CacheHandlerValue,
  CacheHandler as NextHandler,
} from "next/dist/server/lib/incremental-cache/index.js";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { CacheSource } from "../cache-source.ts";
import { type NextCacheOptions, openStock, type Stock } from "./options.ts";

type GetContext = Parameters<NextHandler["get"]>[1];
type SetContext = Parameters<NextHandler["set"]>[2];
type Value = CacheHandlerValue["value"];
type CacheControl = NonNullable<CacheHandlerValue["cacheControl"]>;

/** What is kept of a value of Next. */
interface Stored {
  readonly value: Value;
  readonly lastModified: number;
  readonly cacheControl?: CacheControl;
}

type Kind = "page" | "fetch" | "image";

/** Where Next names the tags of a page or a route handler. */
const TAGS_HEADER = "x-next-cache-tags";
/** No rendering is taken to last longer: an object that Next keeps for longer than a request must not look like one. */
const LONGEST_RENDERING_MS = 60_000;
/** Of a page that never ages and was made stale: numbers that say so. */
const STALE_AFTER_SECONDS = 1;

/** The class that the file named by `cacheHandler` is to export as its default. Throws ConfigError. */
export function nextCacheHandler(
  source: CacheSource,
  options: NextCacheOptions = {},
  clock: Clock = systemClock,
): new (
  context: CacheHandlerContext,
) => NextHandler {
  const stock = openStock(source, options, clock);
  return class XCacheHandler implements NextHandler {
    readonly #build: string;
    /** Next makes one for each request, so nothing that it stores was begun before. */
    readonly #begun = clock.now();

    constructor(context: CacheHandlerContext) {
      this.#build = stock.buildId ?? buildIdOf(context.serverDistDir);
    }

    async get(key: string, context: GetContext): Promise<CacheHandlerValue | null> {
      const kind = kindRead(context);
      const asked = "softTags" in context || "tags" in context ? tagsAsked(context) : [];
      const found = await stock.orNothing(() => stock.entries.read<Stored>(this.#place(kind, key), asked));
      if (found === undefined) return null;
      return found.isStale ? agedValue(found.data, context, clock.now()) : found.data;
    }

    async set(key: string, value: Value, context: SetContext): Promise<void> {
      const kind = kindWritten(context);
      const place = this.#place(kind, key);
      const now = clock.now();
      const cacheControl = "cacheControl" in context ? context.cacheControl : undefined;
      const stored: Stored = { value, lastModified: now, ...(cacheControl && { cacheControl }) };
      const terms = {
        tags: tagsOf(value, context),
        begun: Math.max(this.#begun, now - LONGEST_RENDERING_MS),
        ttl: lifetimeOf(stored, stock),
      };
      await stock.orNothing(() =>
        value === null && kind === "fetch"
          ? stock.entries.remove(place)
          : stock.entries.write(place, stored, terms),
      );
    }

    /** Rejects when the store did not acknowledge: the caller should know. */
    async revalidateTag(tags: string | string[], durations?: { expire?: number }): Promise<void> {
      const list = [tags].flat();
      if (list.length === 0) return;
      if (durations === undefined) await stock.entries.expire(list);
      else await stock.entries.retire(list, durations.expire);
    }

    resetRequestCache(): void {}

    #place(kind: Kind, key: string): string {
      return kind === "page" ? `page:${this.#build}:${key}` : `${kind}:${key}`;
    }
  };
}

function kindRead({ kind }: GetContext): Kind {
  const name: string = kind;
  if (name === "FETCH") return "fetch";
  return name === "IMAGE" ? "image" : "page";
}

function kindWritten(context: SetContext): Kind {
  if (context.fetchCache === true) return "fetch";
  const name: string | undefined = "kind" in context ? context.kind : undefined;
  return name === "IMAGE" ? "image" : "page";
}

function tagsAsked({ tags = [], softTags = [] }: { tags?: string[]; softTags?: string[] }): string[] {
  return [...new Set([...tags, ...softTags])];
}

function tagsOf(value: Value, context: SetContext): readonly string[] {
  if (context.fetchCache === true) return [...new Set(context.tags ?? [])];
  const header = value !== null && "headers" in value ? value.headers?.[TAGS_HEADER] : undefined;
  return typeof header === "string" ? [...new Set(header.split(",").filter((tag) => tag !== ""))] : [];
}

/** Seconds for which Next may want it: stale pages are served until `expire`, other things for `keepStale`. */
function lifetimeOf({ value, cacheControl }: Stored, { maxAge, keepStale }: Stock): number {
  const revalidate =
    cacheControl?.revalidate ?? (value !== null && "revalidate" in value ? value.revalidate : undefined);
  const expire = cacheControl?.expire;
  if (expire !== undefined) return Math.min(Math.max(expire, revalidate || 0, 1), maxAge);
  return typeof revalidate === "number" ? Math.min(revalidate + keepStale, maxAge) : maxAge;
}

/** A value that Next takes for one past its `revalidate`, which it serves while it makes another. */
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

const known = new Map<string, string>();

/** `development` where there is no build. */
export function buildIdOf(serverDistDir: string | undefined): string {
  if (serverDistDir === undefined) return "development";
  let id = known.get(serverDistDir);
  if (id === undefined) {
    id = readBuildId(join(serverDistDir, "..", "BUILD_ID"));
    if (id === undefined) return "development";
    known.set(serverDistDir, id);
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
