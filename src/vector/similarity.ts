// Finds stored answers to similar texts. Candidates come from the index; the answer itself is always read from the store.
import { ConnectionError } from "../core/errors.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { Embedding } from "./embedding.ts";
import { IndexSync } from "./index-sync.ts";
import type { Settings } from "./options.ts";
import { comparableVector, readEntries, type StoredAnswer } from "./stored-answer.ts";
import { VectorIndex } from "./vector-index.ts";

/** A stored answer and the score of its text. */
export interface SemanticMatch<T = unknown> {
  /** The key of the entry in the namespace. */
  readonly key: string;
  /** The text it was stored for. */
  readonly text: string;
  /** Defined by the metric; higher is closer. */
  readonly score: number;
  readonly value: T;
}

interface MatchOptions {
  readonly limit: number;
  readonly threshold: number;
}

/** Answers read at once. */
const BATCH = 16;

/** Embedded to find out the length of the vectors. */
const SAMPLE_TEXT = "sample";

export class Similarity {
  readonly #settings: Settings;
  readonly #embedding: Embedding;
  readonly #report: (error: Error) => void;
  #opened: { readonly index: VectorIndex; readonly sync: IndexSync } | undefined;
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
    await this.#open(dimensions).sync.ready();
  }

  /** The nearest answer above the threshold. The change feed is read only if the index has none. */
  async nearest(vector: Float32Array): Promise<SemanticMatch | undefined> {
    const { sync } = this.#open(vector.length);
    const { clock, threshold, timeoutMs } = this.#settings;
    if (!sync.isBuilt) await withDeadline(clock, timeoutMs, sync.ready(), () => undefined);
    const wanted = { limit: 1, threshold };
    const [known] = await this.#find(vector, wanted);
    if (known !== undefined || !(await sync.catchUp({ waits: false }))) return known;
    const [found] = await this.#find(vector, wanted);
    return found;
  }

  async search(vector: Float32Array, wanted: MatchOptions): Promise<SemanticMatch[]> {
    const { sync } = this.#open(vector.length);
    await sync.ready();
    await sync.catchUp({ waits: true });
    return this.#find(vector, wanted);
  }

  /** This process stored an entry with this vector. Resolves once other processes can find it; never rejects. */
  stored(key: string, vector: Float32Array): Promise<void> {
    return this.#open(vector.length).sync.stored(key, vector);
  }

  /** Runs `clearNamespace` and frees the vectors of its entries. */
  async clear(clearNamespace: () => Promise<void>): Promise<void> {
    const order = this.#opened?.index.order ?? 0;
    await clearNamespace();
    this.#opened?.index.deleteUpTo(order);
  }

  /** Frees the index. */
  close(): void {
    this.#isClosed = true;
    this.#opened?.index.close();
    this.#opened = undefined;
  }

  async #find(vector: Float32Array, { limit, threshold }: MatchOptions): Promise<SemanticMatch[]> {
    const { index } = this.#open(vector.length);
    // Entries that are gone are dropped from the index when found; only then more candidates are needed.
    for (let count = limit; ; count *= 4) {
      const candidates = await index.nearest(vector, count, threshold);
      const live: SemanticMatch[] = [];
      for (let from = 0; from < candidates.length && live.length < limit; from += BATCH) {
        const batch = candidates.slice(from, from + BATCH);
        const found = await readEntries(
          this.#settings.namespace,
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

  #open(dimensions: number): { readonly index: VectorIndex; readonly sync: IndexSync } {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#isClosed) throw closedError();
    const { namespace, clock, metric, exactUpTo, maxVectors } = this.#settings;
    const report = this.#report;
    const index = new VectorIndex({ metric, dimensions, exactUpTo, maxVectors, report });
    const vectorOf = (found: unknown): Float32Array | undefined => this.#comparable(found, dimensions);
    const sync = new IndexSync({ namespace, index, clock, vectorOf, report });
    this.#opened = { index, sync };
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
