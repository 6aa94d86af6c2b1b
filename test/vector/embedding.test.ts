// What an embedder may do wrong, and how that is handled.
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../src/testing/index.ts";
import { Embedding } from "../../src/vector/embedding.ts";
import { type Embedder, EmbeddingError } from "../../src/vector/index.ts";

function embedding(embed: unknown, dimensions?: number): Embedding {
  return new Embedding({ embed: embed as Embedder, clock: new ManualClock(), timeoutMs: 1_000, dimensions });
}

const problemOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "none",
    (error: unknown) => (error instanceof EmbeddingError ? error.problem : error),
  );

describe("an embedder that returns", () => {
  test.each([
    ["nothing", undefined, "not_a_vector"],
    ["a text", "0.5", "not_a_vector"],
    ["an empty list", [], "not_a_vector"],
    ["a list of texts", ["1", "2"], "not_a_vector"],
    ["a list with holes", new Array<number>(3), "not_finite"],
    ["an object", { length: 2, 0: 1, 1: 2 }, "not_a_vector"],
    ["NaN", [1, Number.NaN], "not_finite"],
    ["an infinite number", new Float64Array([1, Number.POSITIVE_INFINITY]), "not_finite"],
    ["a number too large for 32 bits", [1e39, 1], "not_finite"],
    ["more numbers than any model", new Float32Array(65_537).fill(1), "dimensions"],
    ["zeros", new Float32Array(3), "zero"],
    ["numbers too small for 32 bits", [1e-60, 1e-60], "zero"],
  ])("%s is refused", async (_what, given, problem) => {
    expect(await problemOf(embedding(async () => given).vectorOf("text"))).toBe(problem);
  });

  test("a length other than announced, or other than that of the first vector, is refused", async () => {
    expect(await problemOf(embedding(() => [1, 2], 3).vectorOf("text"))).toBe("dimensions");
    const changing = embedding((text: string) => Array.from(text, () => 1));
    expect(await changing.vectorOf("four")).toEqual(Float32Array.of(1, 1, 1, 1));
    expect(await problemOf(changing.vectorOf("three"))).toBe("dimensions");
    expect(await problemOf(changing.vectorOf("five"))).toBe("none");
  });

  test("its own array keeps that array: the vector is a copy", async () => {
    const own = Float32Array.of(1, 2);
    const vector = await embedding(() => own).vectorOf("text");
    own[0] = 9;
    expect(vector).toEqual(Float32Array.of(1, 2));
  });
});

test("an error of the embedder becomes the cause, without its text in the message", async () => {
  for (const embed of [
    () => {
      throw new TypeError("https://user:secret@host");
    },
    () => Promise.reject(new TypeError("https://user:secret@host")),
  ]) {
    const error = await embedding(embed)
      .vectorOf("text")
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EmbeddingError);
    expect(error).toMatchObject({ problem: "failed", message: "the embedder failed: TypeError" });
    expect((error as Error).cause).toBeInstanceOf(TypeError);
  }
});

test("a non-error that an embedder throws is not quoted", async () => {
  const failing = embedding(() => Promise.reject("sk-secret"));
  await expect(failing.vectorOf("text")).rejects.toMatchObject({
    message: "the embedder failed: it threw a string",
    cause: "sk-secret",
  });
});

test("an embedder that hangs is abandoned at the deadline, and its signal aborts", async () => {
  const clock = new ManualClock();
  let signal: AbortSignal | undefined;
  const hanging: Embedder = (_text, context) => {
    signal = context.signal;
    return new Promise(() => {});
  };
  const asked = problemOf(
    new Embedding({ embed: hanging, clock, timeoutMs: 1_000, dimensions: 2 }).vectorOf("text"),
  );
  await clock.advance(999);
  expect(signal?.aborted).toBe(false);
  await clock.advance(1);
  expect(await asked).toBe("late");
  expect(signal?.aborted).toBe(true);
});
