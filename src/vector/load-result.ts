// What a load returns to its callers: an answer that is stored, or one that is returned without being stored.
import { systemClock } from "../core/clock.ts";
import { CodecError } from "../core/errors.ts";
import type { XCache } from "../xcache.ts";
import { isStoredAnswer } from "./stored-answer.ts";

/** Unguessable, so an entry read from the store can never pass for an unstored answer. */
const MARK = systemClock.token();

/** An answer that is not stored under this text. It never leaves the process. */
export interface UnstoredAnswer {
  readonly mark: string;
  readonly text: string;
  readonly value: unknown;
  /** The change count when it was read. */
  readonly readAt: number;
}

export function unstored(text: string, value: unknown, readAt: number): UnstoredAnswer {
  return { mark: MARK, text, value, readAt };
}

export interface Answer {
  readonly value: unknown;
  /** Infinity if the cache itself guarantees freshness. */
  readonly readAt: number;
}

/** The answer to this text; undefined if the entry is something else. */
export function answerTo(text: string, found: unknown): Answer | undefined {
  if (isUnstored(found)) return found.text === text ? found : undefined;
  if (!isStoredAnswer(found) || found.text !== text) return undefined;
  return { value: found.value, readAt: Number.POSITIVE_INFINITY };
}

function isUnstored(found: unknown): found is UnstoredAnswer {
  return typeof found === "object" && found !== null && (found as Partial<UnstoredAnswer>).mark === MARK;
}

/** The caller's value is nested in the stored entry: an error about it must give the path within the value. */
export function withValuePath(error: unknown): unknown {
  if (!(error instanceof CodecError) || error.path?.startsWith("$.value") !== true) return error;
  const path = `$${error.path.slice("$.value".length)}`;
  return new CodecError(error.code, error.message.replace(error.path, path), {
    path,
    cause: error,
    hint: error.hint,
  });
}

/** Counts the changes that this process makes to the namespaces of its semantic caches. */
export interface ChangeCount {
  readonly value: number;
}

/** One count for all: cache objects on one store share their loads, so their counts must be comparable. */
const count = { value: 0 };
const counted = new WeakSet<XCache>();

const changed = (): void => {
  count.value++;
};

export function changesOf(namespace: XCache): ChangeCount {
  if (!counted.has(namespace)) namespace.on("set", changed).on("delete", changed).on("invalidate", changed);
  counted.add(namespace);
  return count;
}
