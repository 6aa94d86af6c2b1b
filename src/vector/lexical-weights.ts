// Word weights by inverse document frequency: rare words weigh more than common ones.
import { createHash } from "node:crypto";

/** The most common English words, roughly in order; they say nothing about the subject of a text. */
const COMMON_WORDS = (
  "the of and to a in is that it was for on are with as be at by this have from or had not but what all were when we " +
  "there can an your which their said if do will each about how up out them then she many some so these would other into " +
  "has more her two like him see time could no make than been its who now my made over did down only way find use may " +
  "where much too any our am does me you i he they his us just also very should please tell want need get let know"
).split(" ");

export interface LexicalWeights {
  /** Identifies the table. */
  readonly name: string;
  of(word: string): number;
}

const LEAST_WEIGHT = 0.1;

/** Without a corpus: weights rise with the rank from a tenth for the most common word; a word not listed weighs one. */
export const builtInWeights: LexicalWeights = weightsBy(
  "english",
  COMMON_WORDS.map(rankWeight),
  COMMON_WORDS,
);

function rankWeight(_word: string, rank: number): number {
  return LEAST_WEIGHT + 0.4 * (Math.log(1 + rank) / Math.log(1 + COMMON_WORDS.length));
}

/** From a corpus: log((1 + texts) / (1 + texts with the word)), scaled to at most one. */
export function countedWeights(texts: Iterable<readonly string[]>): LexicalWeights {
  const counts = new Map<string, number>();
  let total = 0;
  for (const words of texts) {
    total++;
    for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const words = [...counts.keys()].sort();
  const unseen = Math.log(1 + total);
  const weights = words.map((word) => Math.log((1 + total) / (1 + counts.get(word)!)) / unseen);
  const digest = createHash("sha256")
    .update(JSON.stringify([words, weights]))
    .digest("hex")
    .slice(0, 16);
  return weightsBy(digest, weights, words);
}

function weightsBy(name: string, weights: readonly number[], words: readonly string[]): LexicalWeights {
  const table = new Map(words.map((word, at) => [word, Math.max(LEAST_WEIGHT, weights[at]!)]));
  return { name, of: (word) => table.get(word) ?? 1 };
}
