// The approximate index for many vectors: HNSW from the package usearch, loaded on first use.
import { MissingPeerError } from "../core/errors.ts";
import { requirePackage } from "../core/lazy-builtin.ts";
import { requirePeerVersion } from "../core/peer-package.ts";
import type { DistanceName } from "./distance.ts";

/** The part of usearch that is used; it identifies vectors by bigint. */
interface UsearchIndex {
  add(id: bigint, vector: Float32Array, threads: number): void;
  search(vector: Float32Array, count: number, threads: number): { readonly keys: BigUint64Array };
  size(): number;
}

interface Usearch {
  readonly Index: new (settings: Readonly<Record<string, unknown>>) => UsearchIndex;
}

/** usearch has no Manhattan distance. */
const METRIC_NAMES: Readonly<Partial<Record<DistanceName, string>>> = {
  // Vectors are normalised, so the inner product is the cosine.
  cosine: "ip",
  dot: "ip",
  euclidean: "l2sq",
};

const CONNECTIVITY = 16;
const EXPANSION_ADD = 64;
const EXPANSION_SEARCH = 256;
/** Only the calling thread: the other cores belong to the application. */
const THREADS = 1;

/** Vectors by number. A removed vector is only forgotten here; it stays in the graph until that is rebuilt. */
export class Graph {
  readonly #index: UsearchIndex;
  /** The slot of each vector, by its number. */
  readonly #slots = new Map<number, number>();

  constructor(index: UsearchIndex) {
    this.#index = index;
  }

  /** Vectors in the graph, including forgotten ones. */
  get size(): number {
    return this.#index.size();
  }

  get forgotten(): number {
    return this.size - this.#slots.size;
  }

  has(order: number): boolean {
    return this.#slots.has(order);
  }

  add(order: number, slot: number, vector: Float32Array): void {
    this.#index.add(BigInt(order), vector, THREADS);
    this.#slots.set(order, slot);
  }

  forget(order: number): void {
    this.#slots.delete(order);
  }

  /** The slots of about the `count` nearest vectors, without the forgotten ones. */
  near(vector: Float32Array, count: number): number[] {
    const { keys } = this.#index.search(vector, count, THREADS);
    const slots: number[] = [];
    for (const id of keys) {
      const slot = this.#slots.get(Number(id));
      if (slot !== undefined) slots.push(slot);
    }
    return slots;
  }
}

export type OpenGraph = (metric: DistanceName, dimensions: number) => Graph | undefined;

const FEATURE = "Approximate search among many vectors";

/** An empty graph; undefined if usearch lacks the metric. Throws MissingPeerError if usearch does not load. */
export const openGraph: OpenGraph = (metric, dimensions) => {
  const name = METRIC_NAMES[metric];
  if (name === undefined) return undefined;
  let usearch: Usearch;
  try {
    usearch = requirePackage("usearch") as Usearch;
  } catch (cause) {
    throw new MissingPeerError("usearch", FEATURE, { cause });
  }
  requirePeerVersion("usearch", FEATURE);
  const index = new usearch.Index({
    dimensions,
    metric: name,
    quantization: "f32",
    connectivity: CONNECTIVITY,
    expansion_add: EXPANSION_ADD,
    expansion_search: EXPANSION_SEARCH,
    multi: false,
  });
  return new Graph(index);
};
