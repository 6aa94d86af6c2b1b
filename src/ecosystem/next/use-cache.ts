// `cacheHandlers` of Next 15.3 and later: the results of `"use cache"`.
import { createHash } from "node:crypto";
import { type Clock, performanceClock } from "../../core/clock.ts";
import type { CacheSource } from "../cache-source.ts";
import { type NextCacheOptions, openHandlerStore } from "./options.ts";

/** A result, as Next 15 and 16 describe it. Times are seconds, but for `timestamp`. */
export interface UseCacheEntry {
  /** May fail or end early. */
  value: ReadableStream<Uint8Array>;
  tags: string[];
  stale: number;
  /** When it was created, in milliseconds since the epoch. */
  timestamp: number;
  expire: number;
  revalidate: number;
}

/** The handler that Next 15 and 16 expect. It is described here because neither exports a type that the other has. */
export interface UseCacheHandler {
  get(cacheKey: string, softTags: string[]): Promise<UseCacheEntry | undefined>;
  set(cacheKey: string, pendingEntry: Promise<UseCacheEntry>): Promise<void>;
  refreshTags(): Promise<void>;
  getExpiration(...tags: (string | string[])[]): Promise<number>;
  /** Next 16. */
  updateTags(tags: string[], durations?: { expire?: number }): Promise<void>;
  /** Next 15. */
  expireTags(...tags: string[]): Promise<void>;
}

interface Stored extends Omit<UseCacheEntry, "value"> {
  readonly bytes: Uint8Array;
}

const MAX_PLAIN_KEY = 1_024;

/**
 * Next's keys contain all arguments: they may exceed the key length limit, and with binary arguments they are not well-formed
 * Unicode. Such keys are replaced by their hash.
 */
function storeKey(key: string): string {
  if (key.length <= MAX_PLAIN_KEY && !LONE_SURROGATE.test(key)) return `use:${key}`;
  return `use#:${createHash("sha256").update(key, "utf16le").digest("base64url")}`;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The object to export by default from a file named in `cacheHandlers`. Throws ConfigError for an invalid configuration or
 * invalid options.
 */
export function nextUseCacheHandler(
  source: CacheSource,
  options: Omit<NextCacheOptions, "buildId" | "keepStale"> = {},
  clock: Clock = performanceClock,
): UseCacheHandler {
  const { entries, maxAge, orMiss } = openHandlerStore(source, options, clock);
  /** Stores in flight: a read of the same key waits for them. */
  const storing = new Map<string, Promise<void>>();

  async function store(key: string, pending: Promise<UseCacheEntry>): Promise<void> {
    const { value, ...metadata } = await pending;
    // Without a lifetime it would be regenerated on every read.
    if (metadata.expire <= 0) return value.cancel();
    const bytes = new Uint8Array(await new Response(value).arrayBuffer());
    const stored: Stored = { ...metadata, bytes };
    const ttl = Math.min(metadata.expire, maxAge);
    await entries.write(storeKey(key), stored, {
      tags: [...new Set(metadata.tags)],
      begun: metadata.timestamp,
      ttl,
    });
  }

  return {
    async get(key, softTags) {
      await storing.get(key);
      const found = await orMiss(() => entries.read<Stored>(storeKey(key), softTags));
      if (found === undefined) return undefined;
      const { bytes, ...metadata } = found.data;
      return { ...metadata, revalidate: found.isStale ? -1 : metadata.revalidate, value: streamOf(bytes) };
    },

    /** Never rejects: an incomplete value, or one the store refuses, is generated again. */
    async set(key, pending) {
      const done = orMiss(() => store(key, pending)).catch(() => {});
      storing.set(key, done);
      await done;
      if (storing.get(key) === done) storing.delete(key);
    },

    // Tags are checked against the store on every read.
    async refreshTags() {},
    getExpiration: async () => Number.POSITIVE_INFINITY,

    /** Rejects unless the store acknowledged the invalidation. */
    async updateTags(tags, durations) {
      if (tags.length === 0) return;
      if (durations === undefined) await entries.expire(tags);
      else await entries.retire(tags, durations.expire);
    },

    async expireTags(...tags) {
      if (tags.length > 0) await entries.expire(tags);
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
