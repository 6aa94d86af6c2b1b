// What is stored for a text: its answer together with its vector, so that both live and die as one entry.
import { createHash } from "node:crypto";
import { lengthOf } from "./distance.ts";

export interface StoredAnswer {
  readonly text: string;
  readonly model: string;
  /** null: the embedder failed, so the answer is found by its exact text only. */
  readonly vector: Float32Array | null;
  readonly value: unknown;
}

/** Longer texts get a key of fixed length. */
const LONGEST_KEY_BYTES = 200;
const DIGEST = "sha256:";

const HALF_PAIR = /\p{Surrogate}/u;

/** The key of a text: itself while it is short, a digest else. The text is stored as well and compared. */
export function keyOf(text: string): string {
  const isTorn = HALF_PAIR.test(text);
  const isShort = text.length <= LONGEST_KEY_BYTES && Buffer.byteLength(text) <= LONGEST_KEY_BYTES;
  if (isShort && !isTorn && !text.startsWith(DIGEST)) return text;
  // Half of a pair has no UTF-8 of its own: two such texts must not become one.
  const encoding = isTorn ? "utf16le" : "utf8";
  return DIGEST + createHash("sha256").update(encoding).update(text, encoding).digest("hex");
}

/** The namespace is open to others: whatever is found there may be anything. */
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

/** The vector, if it can be compared with those of this model. */
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
