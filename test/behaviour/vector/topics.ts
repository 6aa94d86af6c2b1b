// An embedder for tests that knows a few topics: texts about the same topic are close, however they are worded.
import type { Embedder } from "../../../src/vector/index.ts";

const TOPICS: readonly (readonly string[])[] = [
  ["password", "passphrase", "login"],
  ["reset", "recover", "forgot"],
  ["invoice", "bill", "receipt"],
  ["refund", "money"],
  ["weather", "rain"],
  ["delivery", "parcel"],
];

export interface TopicEmbedder extends Embedder {
  /** The texts it was asked to embed. */
  readonly asked: readonly string[];
}

/** A number per topic, and one that is never zero. */
export function topicEmbedder(): TopicEmbedder {
  const asked: string[] = [];
  const embed = (text: string): number[] => {
    asked.push(text);
    const words = text.toLowerCase().split(/\W+/);
    return [0.05, ...TOPICS.map((topic) => words.filter((word) => topic.includes(word)).length)];
  };
  return Object.assign(embed, { asked, dimensions: TOPICS.length + 1, model: "topics" });
}
