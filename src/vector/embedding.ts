// Asks the embedder for the vector of a text: within its time, and one that can be compared.
import type { Clock } from "../core/clock.ts";
import { describeArrival } from "../core/errors.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { lengthOf } from "./distance.ts";
import { EmbeddingError } from "./embedding-error.ts";

/** What an embedder may give. */
export type EmbeddedVector = Float32Array | Float64Array | readonly number[];

export interface EmbedContext {
  /** Aborts when the answer would come too late. */
  readonly signal: AbortSignal;
}

/** Turns a text into a vector: always the same length, near for texts of like meaning. */
export interface Embedder {
  (text: string, context: EmbedContext): EmbeddedVector | Promise<EmbeddedVector>;
  /** Names the model: vectors of another one are not compared with its own. */
  readonly model?: string;
  /** The length of its vectors. */
  readonly dimensions?: number;
}

export interface EmbeddingOptions {
  readonly embed: Embedder;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Where it is not known, the first vector decides. */
  readonly dimensions: number | undefined;
}

export const MOST_DIMENSIONS = 65_536;

export class Embedding {
  readonly #options: EmbeddingOptions;
  #dimensions: number | undefined;

  constructor(options: EmbeddingOptions) {
    this.#options = options;
    this.#dimensions = options.dimensions;
  }

  get dimensions(): number | undefined {
    return this.#dimensions;
  }

  /** A vector of its own. Throws EmbeddingError. */
  async vectorOf(text: string): Promise<Float32Array> {
    const vector = requireVector(await this.#ask(text));
    const expected = this.#dimensions;
    if (expected !== undefined && vector.length !== expected) {
      throw new EmbeddingError(
        "dimensions",
        `the embedder must give vectors of ${expected} numbers, got ${vector.length}`,
        { hint: "Use one model for a namespace, or another namespace for another model." },
      );
    }
    this.#dimensions = vector.length;
    return vector;
  }

  async #ask(text: string): Promise<unknown> {
    const { clock, embed, timeoutMs } = this.#options;
    const abort = new AbortController();
    try {
      const asked = Promise.resolve(embed(text, { signal: abort.signal }));
      return await withDeadline(clock, timeoutMs, asked, () => {
        const error = new EmbeddingError("late", `the embedder did not answer within ${timeoutMs / 1000} s`, {
          hint: "Check the embedder, or raise `timeout`.",
        });
        abort.abort(error);
        throw error;
      });
    } catch (error) {
      if (error instanceof EmbeddingError) throw error;
      throw new EmbeddingError("failed", `the embedder failed: ${reasonOf(error)}`, {
        cause: error,
        hint: "See `cause` for the embedder's own words.",
      });
    }
  }
}

/** Only the kind: the words may hold an address with a key in it. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.name : `it threw a ${typeof error}`;
}

function requireVector(given: unknown): Float32Array {
  if (!isNumeric(given) || given.length === 0) {
    throw new EmbeddingError(
      "not_a_vector",
      `the embedder must give a list of numbers, got ${describeArrival(given)}`,
      { hint: "Return a Float32Array or an array of numbers." },
    );
  }
  if (given.length > MOST_DIMENSIONS) {
    throw new EmbeddingError(
      "dimensions",
      `the embedder must give at most ${MOST_DIMENSIONS} numbers, got ${given.length}`,
    );
  }
  const vector = Float32Array.from(given);
  const wrong = vector.findIndex((part) => !Number.isFinite(part));
  if (wrong >= 0) {
    throw new EmbeddingError(
      "not_finite",
      `the embedder must give finite numbers that fit into 32 bits, got ${describeArrival(given[wrong])} at [${wrong}]`,
    );
  }
  if (lengthOf(vector) === 0) {
    throw new EmbeddingError(
      "zero",
      `the embedder must give a vector with a direction, got ${vector.length} zeros`,
      {
        hint: "It knows nothing of this text.",
      },
    );
  }
  return vector;
}

function isNumeric(given: unknown): given is EmbeddedVector {
  if (given instanceof Float32Array || given instanceof Float64Array) return true;
  return Array.isArray(given) && given.every((part) => typeof part === "number");
}
