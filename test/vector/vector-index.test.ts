// The index against a plain search through all vectors, with and without the graph.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MissingPeerError } from "../../src/core/errors.ts";
import { seededRandom } from "../../src/testing/manual-clock.ts";
import { DISTANCES, type DistanceName, METRICS, prepare } from "../../src/vector/distance.ts";
import { VectorIndex, type VectorIndexOptions } from "../../src/vector/vector-index.ts";
import { until } from "../support/until.ts";

function indexOf(options: Partial<VectorIndexOptions> = {}): VectorIndex {
  return new VectorIndex({
    metric: "cosine",
    dimensions: 2,
    exactUpTo: 20_000,
    maxVectors: 100_000,
    report: (error) => {
      throw error;
    },
    ...options,
  });
}

/** Vectors in clusters, as embeddings are. */
function cloud(count: number, dimensions: number, seed = 1): Float32Array[] {
  const random = seededRandom(seed);
  const normal = (): number => random() + random() + random() - 1.5;
  const centres = Array.from({ length: 50 }, () => Float32Array.from({ length: dimensions }, normal));
  return Array.from({ length: count }, (_, at) => centres[at % 50]!.map((part) => part + normal()));
}

function naive(
  vectors: readonly Float32Array[],
  query: Float32Array,
  metric: DistanceName,
  count: number,
): string[] {
  const measure = DISTANCES[metric];
  const asked = prepare(query, measure);
  return vectors
    .map((vector, at) => ({ key: String(at), near: measure.nearness(prepare(vector, measure), 0, asked) }))
    .sort((a, b) => b.near - a.near || (a.key < b.key ? -1 : 1))
    .slice(0, count)
    .map(({ key }) => key);
}

const keysOf = (found: readonly { readonly key: string }[]): string[] => found.map(({ key }) => key);

describe.each(METRICS)("by %s the index", (metric) => {
  const vectors = cloud(300, 9);
  const least = metric === "dot" ? -1e9 : 0;

  test("finds exactly what a plain search finds, best first", async () => {
    const index = indexOf({ metric, dimensions: 9 });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    for (const query of cloud(20, 9, 2)) {
      expect(keysOf(await index.nearest(query, 10, least))).toEqual(naive(vectors, query, metric, 10));
    }
  });

  test("finds nothing below the threshold and everything at it", async () => {
    const index = indexOf({ metric, dimensions: 9 });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    const [query] = cloud(1, 9, 3);
    const all = await index.nearest(query!, 300, least);
    const threshold = all[20]!.score;
    expect(await index.nearest(query!, 300, threshold)).toEqual(
      all.filter(({ score }) => score >= threshold),
    );
  });
});

test("whatever is set, replaced and removed, the index finds what is left", async () => {
  const operation = fc.record({
    key: fc.constantFrom("a", "b", "c", "d", "e", "f"),
    vector: fc.option(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: -9, max: 9 }))),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 60 }), async (operations) => {
      const index = indexOf({ metric: "euclidean" });
      const model = new Map<string, readonly [number, number]>();
      for (const { key, vector } of operations) {
        if (vector === null) index.delete(key);
        else index.set(key, Float32Array.from(vector));
        if (vector === null) model.delete(key);
        else model.set(key, vector);
      }
      const expected = [...model]
        .map(([key, [x, y]]) => ({ key, score: 1 / (1 + Math.hypot(x - 5, y)) }))
        .sort((a, b) => b.score - a.score || (a.key < b.key ? -1 : 1));
      const found = await index.nearest(Float32Array.of(5, 0), 10, 0);
      expect(keysOf(found)).toEqual(keysOf(expected));
      expect(index.size).toBe(model.size);
    }),
  );
});

test("a vector that was replaced meanwhile is not removed by a deletion of the old one", async () => {
  const index = indexOf();
  index.set("a", Float32Array.of(1, 0));
  const [met] = await index.nearest(Float32Array.of(1, 0), 1, 0);
  index.set("a", Float32Array.of(1, 0));
  index.delete("a", met!.order);
  expect(index.size).toBe(1);
});

test("beyond maxVectors the oldest are dropped", async () => {
  const index = indexOf({ maxVectors: 3 });
  for (const key of ["a", "b", "c", "a", "d"]) index.set(key, Float32Array.of(1, 1));
  expect(keysOf(await index.nearest(Float32Array.of(1, 1), 9, 0))).toEqual(["a", "c", "d"]);
});

test("a search through many vectors yields to the event loop and tolerates changes meanwhile", async () => {
  const index = indexOf({ dimensions: 512 });
  const vectors = cloud(4_000, 512);
  for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
  let turns = 0;
  let isRunning = true;
  const look = (): void => {
    turns++;
    index.delete(String(4_000 - turns));
    index.set(`new ${turns}`, vectors[turns]!);
    if (isRunning) setImmediate(look);
  };
  setImmediate(look);
  const found = await index.nearest(vectors[7]!, 5, 0);
  isRunning = false;
  expect(found[0]).toMatchObject({ key: "7", score: 1 });
  expect(turns).toBeGreaterThanOrEqual(4);
});

describe("beyond exactUpTo", () => {
  test("the graph finds at least 95 of 100 of the ten nearest among 20,000", async () => {
    const [count, dimensions] = [20_000, 32];
    const vectors = cloud(count, dimensions);
    const index = indexOf({ dimensions, exactUpTo: count - 1 });
    const exact = indexOf({ dimensions, exactUpTo: count });
    for (const [at, vector] of vectors.entries()) {
      index.set(String(at), vector);
      exact.set(String(at), vector);
    }
    await until(() => index.usesGraph, { what: "the graph is complete", timeoutMs: 50_000 });
    expect(exact.usesGraph).toBe(false);
    let found = 0;
    const queries = cloud(40, dimensions, 2);
    for (const query of queries) {
      const nearest = new Set(keysOf(await exact.nearest(query, 10, 0)));
      const given = keysOf(await index.nearest(query, 10, 0));
      found += given.filter((key) => nearest.has(key)).length;
    }
    expect(found / (10 * queries.length)).toBeGreaterThanOrEqual(0.95);
  });

  test.each(["euclidean", "dot"] as const)("the graph serves %s as well", async (metric) => {
    const vectors = cloud(1_500, 16);
    const index = indexOf({ metric, dimensions: 16, exactUpTo: 1_000 });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    await until(() => index.usesGraph, { what: "the graph is complete" });
    let found = 0;
    for (const query of cloud(20, 16, 2)) {
      const nearest = new Set(naive(vectors, query, metric, 10));
      const least = metric === "dot" ? -1e9 : 0;
      found += keysOf(await index.nearest(query, 10, least)).filter((key) => nearest.has(key)).length;
    }
    expect(found).toBeGreaterThanOrEqual(0.95 * 200);
  });

  test("vectors set during and after the build of the graph are found, removed ones are not", async () => {
    const vectors = cloud(1_200, 8);
    const index = indexOf({ dimensions: 8, exactUpTo: 1_000 });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    index.delete("3");
    index.set("4", vectors[5]!);
    await until(() => index.usesGraph, { what: "the graph is complete" });
    index.set("late", vectors[6]!);
    index.delete("6");
    const at = async (query: Float32Array): Promise<string[]> =>
      keysOf(await index.nearest(query, 20, 0.999_99));
    expect(await at(vectors[3]!)).toEqual([]);
    expect(await at(vectors[4]!)).toEqual([]);
    expect(await at(vectors[5]!)).toEqual(["4", "5"]);
    expect(await at(vectors[6]!)).toEqual(["late"]);
  });

  test("removed vectors do not keep a search from finding enough others", async () => {
    const vectors = cloud(1_200, 8);
    const index = indexOf({ dimensions: 8, exactUpTo: 600 });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    await until(() => index.usesGraph, { what: "the graph is complete" });
    for (const key of naive(vectors, vectors[0]!, "cosine", 500)) index.delete(key);
    expect(index.usesGraph).toBe(true);
    const left = naive(vectors, vectors[0]!, "cosine", 510).slice(500);
    const found = keysOf(await index.nearest(vectors[0]!, 10, 0));
    expect(found.filter((key) => left.includes(key)).length).toBeGreaterThanOrEqual(9);
  });

  test("the graph is rebuilt when most of its vectors are removed, and dropped when few are left", async () => {
    const vectors = cloud(1_100, 8);
    const index = indexOf({ dimensions: 8, exactUpTo: 1_000 });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    await until(() => index.usesGraph, { what: "the graph is complete" });
    for (const [at, vector] of vectors.entries()) index.set(String(at), vector);
    index.set("0", vectors[0]!);
    expect(index.usesGraph).toBe(false);
    await until(() => index.usesGraph, { what: "the graph is complete again" });
    index.deleteUpTo(index.order);
    expect(index.size).toBe(0);
    expect(index.usesGraph).toBe(false);
    expect(await index.nearest(vectors[0]!, 1, 0)).toEqual([]);
  });

  test("without usearch search stays exact, and the reason is reported once", async () => {
    const said: Error[] = [];
    const index = indexOf({
      exactUpTo: 2,
      report: (error) => said.push(error),
      openGraph: () => {
        throw new MissingPeerError("usearch", "Approximate search among many vectors");
      },
    });
    for (const key of ["a", "b", "c", "d", "e"]) index.set(key, Float32Array.of(1, key.charCodeAt(0)));
    expect(keysOf(await index.nearest(Float32Array.of(1, 100), 9, 0))).toHaveLength(5);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatchObject({
      packageName: "usearch",
      installCommand: expect.stringMatching(/^npm install "?usearch@/),
    });
    expect(index.usesGraph).toBe(false);
  });

  test("manhattan, which usearch lacks, stays exact without a report", async () => {
    const index = indexOf({ metric: "manhattan", exactUpTo: 2 });
    for (const key of ["a", "b", "c"]) index.set(key, Float32Array.of(1, key.charCodeAt(0)));
    expect(keysOf(await index.nearest(Float32Array.of(1, 98), 1, 0))).toEqual(["b"]);
    expect(index.usesGraph).toBe(false);
  });

  test("a graph that fails is replaced by exact search", async () => {
    const said: Error[] = [];
    const failing = {
      add: () => {
        throw new Error("out of memory");
      },
      has: () => false,
      forget: () => {},
    };
    const index = indexOf({
      exactUpTo: 2,
      report: (error) => said.push(error),
      openGraph: () => failing as never,
    });
    for (const key of ["a", "b", "c", "d"]) index.set(key, Float32Array.of(1, key.charCodeAt(0)));
    await until(() => said.length > 0, { what: "the failure is reported" });
    expect(keysOf(await index.nearest(Float32Array.of(1, 100), 9, 0))).toHaveLength(4);
    expect(said.map(({ message }) => message)).toEqual(["out of memory"]);
  });
});
