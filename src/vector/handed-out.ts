// What a load gives its callers: an answer that is stored, or one that is only handed out.
import { systemClock } from "../core/clock.ts";
import { CodecError } from "../core/errors.ts";
import { isStoredAnswer } from "./stored-answer.ts";

/** Nobody who writes into the store can know it: what was read from there never counts as handed out. */
const MARK = systemClock.token();

/** An answer that is not stored under this text. It never leaves the process. */
export interface HandedOut {
  readonly mark: string;
  readonly text: string;
  readonly value: unknown;
  /** How many changes were known when it was read. */
  readonly readAt: number;
}

export function handOut(text: string, value: unknown, readAt: number): HandedOut {
  return { mark: MARK, text, value, readAt };
}

export interface Answer {
  readonly value: unknown;
  /** Infinity where the cache itself has seen to it. */
  readonly readAt: number;
}

/** The answer to this text; undefined where something else was found. */
export function answerTo(text: string, found: unknown): Answer | undefined {
  if (isHandedOut(found)) return found.text === text ? found : undefined;
  if (!isStoredAnswer(found) || found.text !== text) return undefined;
  return { value: found.value, readAt: Number.POSITIVE_INFINITY };
}

function isHandedOut(found: unknown): found is HandedOut {
  return typeof found === "object" && found !== null && (found as Partial<HandedOut>).mark === MARK;
}

/** The caller's value is a part of what is stored: an error about it speaks of the value alone. */
export function ofTheValue(error: unknown): unknown {
  if (!(error instanceof CodecError) || error.path?.startsWith("$.value") !== true) return error;
  const path = `$${error.path.slice("$.value".length)}`;
  return new CodecError(error.code, error.message.replace(error.path, path), {
    path,
    cause: error,
    hint: error.hint,
  });
}
