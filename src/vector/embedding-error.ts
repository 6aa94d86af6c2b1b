// What an embedder did wrong.
import { type ErrorDetails, XCacheError } from "../core/errors.ts";

/** `failed`: it threw. `late`: it did not answer in time. The others: what it gave is not a vector that can be compared. */
export type EmbeddingProblem = "failed" | "late" | "not_a_vector" | "dimensions" | "not_finite" | "zero";

/** The embedder threw, hung or gave no usable vector. getOrSet runs its load then; search, get and set reject with it. */
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
