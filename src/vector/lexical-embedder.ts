// An embedder without a model: texts are close if they share words and parts of words. It compares spelling, not meaning.
import { requireOptions } from "../core/arguments.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { type Embedder, MOST_DIMENSIONS } from "./embedding.ts";
import { builtInWeights, countedWeights } from "./lexical-weights.ts";

export interface LexicalEmbedderOptions {
  /** The length of the vectors, at least 64. Default: 512. */
  readonly dimensions?: number;
  /**
   * Typical texts, in which to count how common each word is. Vectors depend on it, so pass the same texts in every
   * process. Default: a table of the most common English words.
   */
  readonly corpus?: Iterable<string>;
}

const DEFAULT_DIMENSIONS = 512;
const LEAST_DIMENSIONS = 64;
/** Only the beginning of a longer text counts: embedding is synchronous, on the thread that serves requests. */
const MOST_UNITS = 32_768;
/** More combining marks than any language stacks on a letter: normalising thousands of them takes quadratic time. */
const LONG_MARKS = /(\p{M}{32})\p{M}+/gu;
/** Increment it when the same text would get a different vector. */
const VERSION = 1;

/** Weights of word pairs and character n-grams, relative to 1 for the word itself. */
const PAIR_WEIGHT = 0.3;
const PART_WEIGHT = 0.7;
const PART_LENGTHS = [3, 4];

/**
 * Hashes words, pairs of words and character n-grams into a vector, weighted by how rare each word is. The same text gives
 * the same vector in every process. Texts that say the same in other words are not close.
 */
export function lexicalEmbedder(options: LexicalEmbedderOptions = {}): Embedder {
  requireOptions(options, ["dimensions", "corpus"]);
  const { dimensions = DEFAULT_DIMENSIONS, corpus } = options;
  if (!Number.isSafeInteger(dimensions) || dimensions < LEAST_DIMENSIONS || dimensions > MOST_DIMENSIONS) {
    throw wrong(
      `dimensions must be a whole number from ${LEAST_DIMENSIONS} to ${MOST_DIMENSIONS}`,
      dimensions,
    );
  }
  const weights = corpus === undefined ? builtInWeights : countedWeights(wordsOfAll(corpus));
  const embed = (text: string): Float32Array => {
    const vector = new Float32Array(dimensions);
    let before: { readonly word: string; readonly weight: number } | undefined;
    for (const word of wordsOf(text)) {
      const weight = weights.of(word);
      add(vector, `w${word}`, weight);
      if (before !== undefined) {
        add(vector, `p${before.word} ${word}`, PAIR_WEIGHT * Math.min(weight, before.weight));
      }
      addParts(vector, word, weight);
      before = { word, weight };
    }
    return vector;
  };
  return Object.assign(embed, { dimensions, model: `lexical-${VERSION}-${dimensions}-${weights.name}` });
}

function* wordsOfAll(corpus: Iterable<string>): Iterable<readonly string[]> {
  const isList = typeof corpus === "object" && corpus !== null && Symbol.iterator in corpus;
  if (!isList) throw wrong("corpus must be a list of strings", corpus);
  for (const text of corpus) {
    if (typeof text !== "string") throw wrong("corpus must contain only strings", text);
    yield wordsOf(text);
  }
}

function wrong(expected: string, arrived: unknown): ConfigError {
  return new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);
}

/** Runs of letters and digits, or the single visible characters of a text without any. */
function wordsOf(text: string): readonly string[] {
  const folded = text
    .slice(0, MOST_UNITS)
    .replace(LONG_MARKS, "$1")
    .normalize("NFKC")
    .slice(0, MOST_UNITS)
    .toLowerCase();
  return folded.match(/[\p{L}\p{N}\p{M}]+/gu) ?? folded.match(/\S/gu) ?? [];
}

/** The n-grams of a word together weigh a fixed fraction of it, however long it is. */
function addParts(vector: Float32Array, word: string, weight: number): void {
  const characters = [..."<", ...word, ...">"];
  for (const length of PART_LENGTHS) {
    const count = characters.length - length + 1;
    if (count < 1) continue;
    const each = (PART_WEIGHT * weight) / Math.sqrt(count);
    for (let at = 0; at < count; at++) {
      add(vector, `c${characters.slice(at, at + length).join("")}`, each);
    }
  }
}

/** The hash gives position and sign, so that collisions cancel out on average. */
function add(vector: Float32Array, feature: string, weight: number): void {
  const hash = hashOf(feature);
  const at = (hash >>> 1) % vector.length;
  vector[at] = vector[at]! + (hash & 1 ? weight : -weight);
}

/** FNV-1a over UTF-16 units with the finaliser of MurmurHash3: stable across processes and versions. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
