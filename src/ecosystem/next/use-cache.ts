// `cacheHandlers` of Next 16: what `"use cache"` remembers.
import { createHash } from "node:crypto";
import type { CacheEntry, CacheHandler } from "next/cache.js";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { CacheSource } from "../cache-source.ts";
import { type NextCacheOptions, openStock } from "./options.ts";

interface Stored extends Omit<CacheEntry, "value"> {
  readonly bytes: Uint8Array;
}

const LONGEST_PLAIN_KEY = 1_024;

/**
 * The keys of Next hold all arguments: they may be longer than any store takes, and where one is binary they are not
 * Unicode. Such a key is known by its hash.
 */
function place(key: string): string {
  if (key.length <= LONGEST_PLAIN_KEY && !LONE_SURROGATE.test(key)) return `use:${key}`;
  return `use#:${createHash("sha256").update(key, "utf16le").digest("base64url")}`;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The object that a file named in `cacheHandlers` is to export as its default. Throws ConfigError. */
export function nextUseCacheHandler(
  source: CacheSource,
  options: Omit<NextCacheOptions, "buildId" | "keepStale"> = {},
  clock: Clock = systemClock,
): CacheHandler {
  const { entries, maxAge, orNothing } = openStock(source, options, clock);
  /** Whoever asks for what is being stored waits for it. */
  const storing = new Map<string, Promise<void>>();

  async function store(key: string, pending: Promise<CacheEntry>): Promise<void> {
    const { value, ...facts } = await pending;
    // Without a lifetime it is made anew on every read.
    if (facts.expire <= 0) return value.cancel();
    const bytes = new Uint8Array(await new Response(value).arrayBuffer());
    const stored: Stored = { ...facts, bytes };
    const ttl = Math.min(facts.expire, maxAge);
    await entries.write(place(key), stored, { tags: [...new Set(facts.tags)], begun: facts.timestamp, ttl });
  }

  return {
    async get(key, softTags) {
      await storing.get(key);
      const found = await orNothing(() => entries.read<Stored>(place(key), softTags));
      if (found === undefined) return undefined;
      const { bytes, ...facts } = found.data;
      return { ...facts, revalidate: found.isStale ? -1 : facts.revalidate, value: streamOf(bytes) };
    },

    /** Never rejects: a value that broke off, or that the store does not take, is made again. */
    async set(key, pending) {
      const done = orNothing(() => store(key, pending)).catch(() => {});
      storing.set(key, done);
      await done;
      if (storing.get(key) === done) storing.delete(key);
    },

    // Tags are compared in the store, with every read.
    async refreshTags() {},
    getExpiration: async () => Number.POSITIVE_INFINITY,

    /** Rejects when the store did not acknowledge: the caller should know. */
    async updateTags(tags, durations) {
      if (tags.length === 0) return;
      if (durations === undefined) await entries.expire(tags);
      else await entries.retire(tags, durations.expire);
    },
  };
}

function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}
