// What is stored for a text: its answer and its vector in one entry, so that they expire together.
import { createHash } from "node:crypto";
import { CodecError } from "../core/errors.ts";
import type { XCache } from "../xcache.ts";
import { lengthOf } from "./distance.ts";

export interface StoredAnswer {
  readonly text: string;
  readonly model: string;
  /** null: the embedder failed, so the answer is found by its exact text only. */
  readonly vector: Float32Array | null;
  readonly value: unknown;
}

/** Longer texts are keyed by a digest. */
const LONGEST_KEY_BYTES = 200;
const DIGEST = "sha256:";

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The text itself if it is short, else a digest. The text is also stored in the entry and compared. */
export function keyOf(text: string): string {
  const hasLoneSurrogate = LONE_SURROGATE.test(text);
  const isShort = text.length <= LONGEST_KEY_BYTES && Buffer.byteLength(text) <= LONGEST_KEY_BYTES;
  if (isShort && !hasLoneSurrogate && !text.startsWith(DIGEST)) return text;
  // A lone surrogate has no UTF-8 encoding: two texts that differ only in one must not share a key.
  const encoding = hasLoneSurrogate ? "utf16le" : "utf8";
  return DIGEST + createHash("sha256").update(encoding).update(text, encoding).digest("hex");
}

/** Anyone may write to the namespace, so an entry there may be anything. */
export function isStoredAnswer(found: unknown): found is StoredAnswer {
  if (typeof found !== "object" || found === null) return false;
  const { text, model, vector, value } = found as Partial<StoredAnswer>;
  return (
    typeof text === "string" &&
    typeof model === "string" &&
    (vector === null || vector instanceof Float32Array) &&
    value !== undefined
  );
}

/** The vector, if it is comparable with those of this model. */
export function comparableVector(
  found: unknown,
  model: string,
  dimensions: number,
): Float32Array | undefined {
  if (!isStoredAnswer(found) || found.model !== model || found.vector?.length !== dimensions)
    return undefined;
  const length = lengthOf(found.vector);
  return length > 0 && Number.isFinite(length) ? found.vector : undefined;
}

/** The entries that exist. One that cannot be decoded is skipped, so that the others are still found. */
export async function readEntries(
  namespace: XCache,
  keys: readonly string[],
): Promise<ReadonlyMap<string, unknown>> {
  try {
    return await namespace.getMany(keys);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
  }
  const found = new Map<string, unknown>();
  for (const key of keys) {
    try {
      found.set(key, await namespace.get(key));
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
    }
  }
  return found;
}
