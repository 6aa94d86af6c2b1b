// Published as xcache/vector: a semantic cache, which finds answers by similarity.
export type { DistanceName } from "./distance.ts";
export type { EmbedContext, EmbeddedVector, Embedder } from "./embedding.ts";
export { EmbeddingError, type EmbeddingProblem } from "./embedding.ts";
export { type LexicalEmbedderOptions, lexicalEmbedder } from "./lexical-embedder.ts";
export type { SemanticCacheOptions } from "./options.ts";
export {
  type SearchOptions,
  SemanticCache,
  type SemanticEvent,
  type SemanticStats,
} from "./semantic-cache.ts";
export type { SemanticMatch } from "./similarity.ts";
