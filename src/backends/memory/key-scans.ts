// Scans of the keys of a namespace: in steps that let the event loop turn, and continued later from a position.
import { unknownPosition } from "../../core/errors.ts";
import { nextTurn } from "../../core/event-loop.ts";

/** Entries and key characters per scan step; then it yields to the event loop. */
const SCAN_BATCH = 1_000;
const SCAN_CHARACTERS = 64 * 1024;

/** Scans that can be continued; the oldest is forgotten. */
const MOST_SCANS = 16;

/** Every key in steps. `more` is called before each step that another one may follow. */
export async function* inSteps(
  keys: Iterator<string>,
  signal?: AbortSignal,
  more?: () => void,
): AsyncIterable<readonly string[]> {
  let batch: string[] = [];
  let characters = 0;
  // Not `for of`, which would end an iterator that is to be continued later.
  for (let next = keys.next(); !next.done; next = keys.next()) {
    const key = next.value;
    if (signal?.aborted) break;
    batch.push(key);
    characters += key.length;
    if (batch.length < SCAN_BATCH && characters < SCAN_CHARACTERS) continue;
    more?.();
    yield batch;
    batch = [];
    characters = 0;
    await nextTurn();
  }
  if (!signal?.aborted) yield batch;
}

/** The position of a scan stands for its iterator, which stays right while keys come and go. */
export class KeyScans {
  readonly #kept = new Map<string, Iterator<string>>();
  #last = 0;

  positionOf(keys: Iterator<string>): string {
    const known = [...this.#kept].find(([, kept]) => kept === keys)?.[0];
    const position = known ?? String(++this.#last);
    this.#kept.set(position, keys);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_SCANS && oldest !== undefined) this.#kept.delete(oldest);
    return position;
  }

  at(position: string): Iterator<string> {
    const keys = this.#kept.get(position);
    if (keys === undefined) throw unknownPosition(position);
    return keys;
  }
}
