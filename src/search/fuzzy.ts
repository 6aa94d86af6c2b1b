// Fuzzy search over streamed keys.
//
// A key's score says how much of the text it contains: 100 · (1 − edits / length), rounded down. `length` counts the
// characters of the text without spaces; `edits` is the least number of characters to insert, delete, replace or swap with
// their neighbour until each word of the text occurs somewhere in the key. So 100 is an exact occurrence anywhere, one typo
// in a text of ten is 90, and the rest of the key does not matter. Words match in any order.
// Both sides are normalised (NFKC) and case-folded first; a character is a code point.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { BestMatches } from "./best-matches.ts";
import { FuzzyQuery } from "./fuzzy-query.ts";

export interface FuzzyOptions {
  /** The least score of a match, an integer from 0 to 100. Default: 80. */
  readonly threshold?: number;
  /** The most matches to return; memory is bounded by it. Default: 10. */
  readonly limit?: number;
  /** Stops the search; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface FuzzyMatch {
  readonly key: string;
  /** An integer from 0 to 100; 100: every word of the text occurs in the key. */
  readonly score: number;
  /** From the first matched character to the last, in UTF-16 units of the key; empty when nothing matched. */
  readonly range: readonly [start: number, end: number];
}

export type KeySource = Iterable<string> | AsyncIterable<string | readonly string[]>;

/** About 0.15 ms at 5 ns each, but many times that before the loop is compiled. */
const WORK_PER_TURN = 30_000;

/** Limits of the text in UTF-16 units, in characters after normalising and in words; they bound the work per key. */
const MOST_CHARACTERS = 256;
const MOST_WORDS = 16;
const TOO_LONG = `text must be at most ${MOST_CHARACTERS} characters`;

/**
 * The keys that match `text`, best first, equal scores by key. Keys come singly or in batches and may repeat. Rejects with
 * ConfigError ARGUMENT_INVALID for options out of range, and for a text without a visible character or of more than 256
 * characters or 16 words.
 */
export async function fuzzySearch(
  keys: KeySource,
  text: string,
  options: FuzzyOptions = {},
): Promise<FuzzyMatch[]> {
  const { threshold = 80, limit = 10, signal } = options;
  requireThat(typeof text === "string", "text must be a string", text);
  requireThat(text.length <= MOST_CHARACTERS, TOO_LONG, text);
  const query = new FuzzyQuery(text);
  requireThat(query.length > 0, "text must contain a visible character", text);
  requireThat(query.length <= MOST_CHARACTERS, `${TOO_LONG} after normalising`, text);
  requireThat(query.words <= MOST_WORDS, `text must have at most ${MOST_WORDS} words`, text);
  requireThat(
    Number.isInteger(threshold) && threshold >= 0 && threshold <= 100,
    "threshold must be an integer from 0 to 100",
    threshold,
  );
  requireThat(Number.isInteger(limit) && limit > 0, "limit must be a positive integer", limit);
  signal?.throwIfAborted();

  const best = new BestMatches(limit, Math.floor((query.length * (100 - threshold)) / 100));
  const turns = new Turns(signal);
  await unlessAborted(search(keys, query, best, turns), signal);
  const matches: FuzzyMatch[] = [];
  for (const { key, distance } of best.sorted()) {
    const score = scoreOf(distance, query.length);
    matches.push({ key, score, range: await turns.through(query.range(key)) });
  }
  return matches;
}

function scoreOf(distance: number, length: number): number {
  return Math.floor((100 * (length - distance)) / length);
}

/** The greatest distance of the same score: beyond 100 characters several distances share a score and count as equal. */
function greatestAlike(distance: number, length: number): number {
  return length - Math.ceil((scoreOf(distance, length) * length) / 100);
}

async function search(keys: KeySource, query: FuzzyQuery, best: BestMatches, turns: Turns): Promise<void> {
  const offer = (key: string, distance: number): void => {
    if (distance <= best.furthest) best.offer(key, greatestAlike(distance, query.length));
  };
  const endsTurn = (key: string): boolean => {
    if (query.isLong(key)) return true;
    offer(key, query.distance(key, best.furthest));
    return turns.isOver(query.work);
  };
  const endTurn = async (key: string): Promise<void> => {
    if (query.isLong(key)) offer(key, await turns.through(query.distanceInSteps(key)));
    await turns.next();
  };
  if (Symbol.iterator in keys) {
    for (const key of keys) if (endsTurn(key)) await endTurn(key);
    return;
  }
  for await (const item of keys) {
    turns.throwIfAborted();
    if (typeof item === "string") {
      if (endsTurn(item)) await endTurn(item);
    } else {
      for (const key of item) if (endsTurn(key)) await endTurn(key);
    }
  }
}

/** Yields to the event loop after a fixed amount of work, which is counted and needs no clock. */
class Turns {
  readonly #signal: AbortSignal | undefined;
  #work = 0;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  isOver(work: number): boolean {
    this.#work += work;
    return this.#work >= WORK_PER_TURN;
  }

  /** Runs steps that yield their work. */
  async through<R>(steps: Iterator<number, R>): Promise<R> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.isOver(step.value)) await this.next();
    }
  }

  async next(): Promise<void> {
    this.#work = 0;
    await new Promise((resolve) => setImmediate(resolve));
    this.throwIfAborted();
  }

  /** Throws the signal's reason if it has aborted. */
  throwIfAborted(): void {
    this.#signal?.throwIfAborted();
  }
}

/** Rejects on abort even if the source never yields. */
function unlessAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function requireThat(holds: boolean, expected: string, arrived: unknown): void {
  if (!holds) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `fuzzySearch(): ${expected}; got ${describeArrival(arrived)}.`,
      {
        operation: "fuzzySearch",
      },
    );
  }
}
