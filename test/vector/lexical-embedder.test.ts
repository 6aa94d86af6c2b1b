// The embedder without a model: which texts it considers similar.
import { describe, expect, test } from "vitest";
import { DISTANCES, prepare } from "../../src/vector/distance.ts";
import type { EmbeddedVector, Embedder } from "../../src/vector/index.ts";
import { lexicalEmbedder } from "../../src/vector/index.ts";
import { soon } from "../support/pace.ts";

const context = { signal: new AbortController().signal };

function likeness(embed: Embedder, one: string, other: string): number {
  const [a, b] = [one, other].map((text) =>
    prepare(Float32Array.from(embed(text, context) as EmbeddedVector), DISTANCES.cosine),
  );
  return DISTANCES.cosine.score(DISTANCES.cosine.nearness(a!, 0, b!));
}

describe("the lexical embedder", () => {
  const embed = lexicalEmbedder();

  test("scores another wording with the same significant words as near, and other questions as far", () => {
    const question = "How do I reset my password?";
    expect(likeness(embed, question, "how can I reset my password")).toBeGreaterThan(0.85);
    expect(likeness(embed, question, "resetting passwords")).toBeGreaterThan(0.3);
    expect(likeness(embed, question, "How do I cancel my subscription?")).toBeLessThan(0.35);
    expect(likeness(embed, question, "weather in Lisbon tomorrow")).toBeLessThan(0.15);
  });

  test("scores a word with a typo as nearer than another word", () => {
    expect(likeness(embed, "authentication", "authentcation")).toBeGreaterThan(0.25);
    expect(likeness(embed, "authentication", "subscription")).toBeLessThan(0.2);
  });

  test("compares spelling, not meaning", () => {
    expect(likeness(embed, "purchase a car", "buy an automobile")).toBeLessThan(0.2);
  });

  test("gives common words little weight", () => {
    const common = likeness(embed, "what is the refund", "what is the weather");
    const rare = likeness(embed, "what is the refund", "tell me about a refund");
    expect(rare).toBeGreaterThan(2 * common);
  });

  test("ignores case and composes characters, and knows words of any script", () => {
    expect(likeness(embed, "CAFÉ Überfall", "cafe\u0301 u\u0308berfall")).toBe(1);
    expect(likeness(embed, "как сбросить пароль", "сбросить пароль")).toBeGreaterThan(0.7);
    expect(likeness(embed, "パスワードを忘れた", "パスワードを忘れました")).toBeGreaterThan(0.3);
  });

  test("gives the same vector for the same text in every process", () => {
    const vector = embed("How do I reset my password?", context) as Float32Array;
    const places = [...vector.entries()].filter(([, part]) => part !== 0);
    expect(vector).toHaveLength(512);
    expect(places.slice(0, 3).map(([at, part]) => [at, part.toFixed(4)])).toEqual([
      [20, "0.2307"],
      [25, "-0.4661"],
      [55, "-0.2475"],
    ]);
    expect(embed.model).toBe("lexical-1-512-english");
  });

  test("has a direction for a text without letters, and none for blanks", () => {
    expect(likeness(embed, "?!", "?!")).toBe(1);
    expect((embed(" \n\t", context) as Float32Array).every((part) => part === 0)).toBe(true);
  });

  test("reads the beginning of a very long text only", () => {
    const long = "word ".repeat(20_000);
    const startedAt = performance.now();
    expect(embed(`${long}tail`, context)).toEqual(embed(long, context));
    expect(performance.now() - startedAt).toBeLessThan(soon(1_000));
  });

  test("weighs words by how common they are in a given corpus, and names that in its model", () => {
    const corpus = ["printer offline", "printer jam", "printer driver", "printer ink", "scanner jam"];
    const counted = lexicalEmbedder({ corpus });
    expect(likeness(counted, "printer jam", "printer ink")).toBeLessThan(
      likeness(embed, "printer jam", "printer ink"),
    );
    expect(counted.model).not.toBe(embed.model);
    expect(lexicalEmbedder({ corpus: corpus.toReversed() }).model).toBe(counted.model);
    expect(lexicalEmbedder({ corpus: [] }).dimensions).toBe(512);
    expect(likeness(lexicalEmbedder({ corpus: [] }), "a", "a")).toBe(1);
  });

  test("refuses invalid dimensions", () => {
    for (const dimensions of [0, 63, 64.5, Number.NaN, 65_537]) {
      expect(() => lexicalEmbedder({ dimensions })).toThrow(
        "dimensions must be a whole number from 64 to 65536",
      );
    }
  });

  test.each([
    [null, "options must be an object"],
    [{ dimension: 64 }, "dimensions"],
    [{ corpus: "one text" }, "corpus must be a list of strings"],
    [{ corpus: 5 }, "corpus must be a list of strings"],
    [{ corpus: ["a", 1] }, "corpus must contain only strings"],
  ])("refuses %o", (options, message) => {
    expect(() => lexicalEmbedder(options as never)).toThrow(message);
  });

  test.each([
    ["a letter under thousands of marks", `a${"\u0316\u0300".repeat(16_000)}`],
    ["characters that normalise to many", "\ufdfa".repeat(32_768)],
  ])("is not held up by %s", (_what, odd) => {
    const before = process.cpuUsage();
    embed(odd, context);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(250);
  });
});
