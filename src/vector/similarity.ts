// Finds stored answers to texts that are alike. Whatever the index says, an answer is read from the store before it is given.

import { ConnectionError } from "../core/errors.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { readEntries } from "./answer-reader.ts";
import { Embedding } from "./embedding.ts";
import { IndexSync } from "./index-sync.ts";
import type { Settings } from "./options.ts";
import { comparableVector, type StoredAnswer } from "./stored-answer.ts";
import { VectorIndex } from "./vector-index.ts";

/** A stored answer and how near its text is. */
export interface SemanticMatch<T = unknown> {
  /** The key of the entry in the namespace. */
  readonly key: string;
  /** The text it was stored for. */
  readonly text: string;
  /** What it means, the metric says; higher is nearer. */
  readonly score: number;
  readonly value: T;
}

interface Wanted {
  readonly limit: number;
  readonly threshold: number;
}

/** Answers read at once. */
const BATCH = 16;

/** A text to learn the length of vectors from. */
const SAMPLE_TEXT = "sample";

export class Similarity {
  readonly #settings: Settings;
  readonly #embedding: Embedding;
  readonly #report: (error: Error) => void;
  #opened: { readonly index: VectorIndex; readonly keeper: IndexSync } | undefined;
  #isClosed = false;

  constructor(settings: Settings, report: (error: Error) => void) {
    this.#settings = settings;
    this.#embedding = new Embedding(settings);
    this.#report = report;
  }

  get size(): number {
    return this.#opened?.index.size ?? 0;
  }

  get usesGraph(): boolean {
    return this.#opened?.index.usesGraph ?? false;
  }

  /** Throws EmbeddingError. */
  vectorOf(text: string): Promise<Float32Array> {
    return this.#embedding.vectorOf(text);
  }

  async ready(): Promise<void> {
    const { dimensions = (await this.vectorOf(SAMPLE_TEXT)).length } = this.#embedding;
    await this.#open(dimensions).keeper.ready();
  }

  /** The nearest answer above the threshold. Others are asked for news only before the answer would be: none. */
  async nearest(vector: Float32Array): Promise<SemanticMatch | undefined> {
    const { keeper } = this.#open(vector.length);
    const { clock, threshold, timeoutMs } = this.#settings;
    if (!keeper.isBuilt) await withDeadline(clock, timeoutMs, keeper.ready(), () => undefined);
    const wanted = { limit: 1, threshold };
    const [known] = await this.#find(vector, wanted);
    if (known !== undefined || !(await keeper.catchUp({ waits: false }))) return known;
    const [told] = await this.#find(vector, wanted);
    return told;
  }

  async search(vector: Float32Array, wanted: Wanted): Promise<SemanticMatch[]> {
    const { keeper } = this.#open(vector.length);
    await keeper.ready();
    await keeper.catchUp({ waits: true });
    return this.#find(vector, wanted);
  }

  /** An entry with this vector is in the store. Resolves once other processes can find it; never rejects. */
  stored(key: string, vector: Float32Array): Promise<void> {
    return this.#open(vector.length).keeper.stored(key, vector);
  }

  /** Runs what empties the namespace, and frees the vectors of what was in it. */
  async clear(emptying: () => Promise<void>): Promise<void> {
    const order = this.#opened?.index.order ?? 0;
    await emptying();
    this.#opened?.index.deleteUpTo(order);
  }

  /** Frees the index. */
  close(): void {
    this.#isClosed = true;
    this.#opened?.index.close();
    this.#opened = undefined;
  }

  async #find(vector: Float32Array, { limit, threshold }: Wanted): Promise<SemanticMatch[]> {
    const { index } = this.#open(vector.length);
    // Entries that are gone leave the index when they are met, so more are asked for only while there are such.
    for (let count = limit; ; count *= 4) {
      const candidates = await index.nearest(vector, count, threshold);
      const live: SemanticMatch[] = [];
      for (let from = 0; from < candidates.length && live.length < limit; from += BATCH) {
        const batch = candidates.slice(from, from + BATCH);
        const found = await readEntries(
          this.#settings.space,
          batch.map(({ key }) => key),
        );
        for (const { key, order } of batch) {
          const answer = found.get(key);
          const stored = this.#comparable(answer, vector.length);
          if (stored === undefined) {
            index.delete(key, order);
            continue;
          }
          const { text, value } = answer as StoredAnswer;
          const score = index.score(vector, stored);
          if (score >= threshold) live.push({ key, text, score, value });
        }
      }
      if (live.length >= limit || candidates.length < count) return live.sort(bestFirst).slice(0, limit);
    }
  }

  #comparable(found: unknown, dimensions: number): Float32Array | undefined {
    return comparableVector(found, this.#settings.model, dimensions);
  }

  #open(dimensions: number): { readonly index: VectorIndex; readonly keeper: IndexSync } {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#isClosed) throw closedError();
    const { space, clock, metric, exactUpTo, maxVectors } = this.#settings;
    const report = this.#report;
    const index = new VectorIndex({ metric, dimensions, exactUpTo, maxVectors, report });
    const vectorOf = (found: unknown): Float32Array | undefined => this.#comparable(found, dimensions);
    const keeper = new IndexSync({ space, index, clock, vectorOf, report });
    this.#opened = { index, keeper };
    return this.#opened;
  }
}

export function closedError(): ConnectionError {
  return new ConnectionError("this semantic cache was closed", {
    code: "DISCONNECTED",
    hint: "Make a new one.",
  });
}

function bestFirst(a: SemanticMatch, b: SemanticMatch): number {
  if (a.score !== b.score) return b.score - a.score;
  return a.key < b.key ? -1 : 1;
}
