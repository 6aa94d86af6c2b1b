// Calls the embedder with a deadline and validates its vector.
import type { Clock } from "../core/clock.ts";
import { describeArrival, type ErrorDetails, XCacheError } from "../core/errors.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import { lengthOf } from "./distance.ts";

/** What an embedder may return. */
export type EmbeddedVector = Float32Array | Float64Array | readonly number[];

export interface EmbedContext {
  /** Aborts at the deadline. */
  readonly signal: AbortSignal;
}

/** Turns a text into a vector of fixed length; texts of similar meaning get vectors that are close. */
export interface Embedder {
  (text: string, context: EmbedContext): EmbeddedVector | Promise<EmbeddedVector>;
  /** Names the model: only vectors of the same model are compared. */
  readonly model?: string;
  /** The length of its vectors. */
  readonly dimensions?: number;
}

export interface EmbeddingOptions {
  readonly embed: Embedder;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** If undefined, the first vector decides. */
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

  /** A private copy. Throws EmbeddingError. */
  async vectorOf(text: string): Promise<Float32Array> {
    const vector = requireVector(await this.#embed(text));
    const expected = this.#dimensions;
    if (expected !== undefined && vector.length !== expected) {
      throw new EmbeddingError(
        "dimensions",
        `the embedder must return vectors of ${expected} numbers, got ${vector.length}`,
        { hint: "Use one model per namespace." },
      );
    }
    this.#dimensions = vector.length;
    return vector;
  }

  async #embed(text: string): Promise<unknown> {
    const { clock, embed, timeoutMs } = this.#options;
    const abort = new AbortController();
    try {
      const pending = Promise.resolve(embed(text, { signal: abort.signal }));
      return await withDeadline(clock, timeoutMs, pending, () => {
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
        hint: "See `cause` for the embedder's own error.",
      });
    }
  }
}

/** Only the error's name: its message may contain a URL with an API key. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.name : `it threw a ${typeof error}`;
}

function requireVector(given: unknown): Float32Array {
  if (!isNumeric(given) || given.length === 0) {
    throw new EmbeddingError(
      "not_a_vector",
      `the embedder must return a list of numbers, got ${describeArrival(given)}`,
      { hint: "Return a Float32Array or an array of numbers." },
    );
  }
  if (given.length > MOST_DIMENSIONS) {
    throw new EmbeddingError(
      "dimensions",
      `the embedder must return at most ${MOST_DIMENSIONS} numbers, got ${given.length}`,
    );
  }
  const vector = Float32Array.from(given);
  const wrong = vector.findIndex((part) => !Number.isFinite(part));
  if (wrong >= 0) {
    throw new EmbeddingError(
      "not_finite",
      `the embedder must return finite 32-bit floats, got ${describeArrival(given[wrong])} at [${wrong}]`,
    );
  }
  if (lengthOf(vector) === 0) {
    throw new EmbeddingError(
      "zero",
      `the embedder must return a vector with a direction, got ${vector.length} zeros`,
      {
        hint: "The embedder found nothing to embed in this text.",
      },
    );
  }
  return vector;
}

function isNumeric(given: unknown): given is EmbeddedVector {
  if (given instanceof Float32Array || given instanceof Float64Array) return true;
  return Array.isArray(given) && given.every((part) => typeof part === "number");
}

/** `failed`: it threw. `late`: it missed the deadline. The others: what it returned is not a comparable vector. */
export type EmbeddingProblem = "failed" | "late" | "not_a_vector" | "dimensions" | "not_finite" | "zero";

/** The embedder threw, hung or returned no usable vector. getOrSet then runs its load; search, get and set reject. */
export class EmbeddingError extends XCacheError {
  readonly problem: EmbeddingProblem;

  constructor(problem: EmbeddingProblem, message: string, details?: ErrorDetails) {
    super(
      problem === "failed" || problem === "late" ? "EMBEDDING_FAILED" : "EMBEDDING_INVALID",
      message,
      details,
    );
    this.problem = problem;
  }
}
