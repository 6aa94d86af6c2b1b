// Finds the nearest vectors: by comparing every one up to a limit, with an approximate graph beyond it.
import { systemClock } from "../core/clock.ts";
import { nextTurn } from "../core/event-loop.ts";
import { toError } from "../core/events.ts";
import { BestMatches } from "../search/best-matches.ts";
import { DISTANCES, type Distance, type DistanceName, prepare } from "./distance.ts";
import { type Graph, type OpenGraph, openGraph } from "./graph.ts";
import { VectorTable } from "./vector-table.ts";

export interface VectorIndexOptions {
  readonly metric: DistanceName;
  readonly dimensions: number;
  /** Beyond this many vectors a graph is built. */
  readonly exactUpTo: number;
  /** Beyond this many the oldest are dropped. */
  readonly maxVectors: number;
  /** Called once with the reason if there can be no graph. */
  readonly report: (error: Error) => void;
  readonly openGraph?: OpenGraph;
}

export interface Candidate {
  readonly key: string;
  readonly score: number;
  /** Distinguishes this vector of the key from a later one. */
  readonly order: number;
}

/** Multiplications per event-loop turn: about 0.3 ms, or a few ms before the loop is compiled. */
const WORK_PER_TURN = 100_000;
/** Adding a vector to the graph takes 0.1 to 1 ms. */
const ADDED_PER_TURN = 8;

/** A timer, because building the graph must not keep the process alive; an immediate would. */
const idleTurn = (): Promise<void> => new Promise((resolve) => void systemClock.after(0, resolve));

export class VectorIndex {
  readonly dimensions: number;
  readonly #options: VectorIndexOptions;
  readonly #metric: Distance;
  readonly #table: VectorTable;
  #graph: Graph | undefined;
  /** The graph has every vector. */
  #isGraphComplete = false;
  /** No graph can be built. */
  #isExactOnly = false;

  constructor(options: VectorIndexOptions) {
    this.#options = options;
    this.dimensions = options.dimensions;
    this.#metric = DISTANCES[options.metric];
    this.#table = new VectorTable(options.dimensions);
  }

  get size(): number {
    return this.#table.size;
  }

  get usesGraph(): boolean {
    return this.#isGraphComplete;
  }

  /** Vectors set later have a higher order. */
  get order(): number {
    return this.#table.order;
  }

  get hasRoom(): boolean {
    return this.#table.size < this.#options.maxVectors;
  }

  has(key: string): boolean {
    return this.#table.has(key);
  }

  *entries(): Iterable<{ readonly key: string; readonly order: number }> {
    for (const [key, slot] of this.#table) yield { key, order: this.#table.orderOf(slot) };
  }

  orderOf(key: string): number | undefined {
    const slot = this.#table.slotOf(key);
    return slot === undefined ? undefined : this.#table.orderOf(slot);
  }

  set(key: string, vector: Float32Array): void {
    this.delete(key);
    const oldest = this.#table.size >= this.#options.maxVectors ? this.#table.oldest() : undefined;
    if (oldest !== undefined) this.delete(oldest);
    const slot = this.#table.set(key, prepare(vector, this.#metric));
    if (this.#graph === undefined) this.#considerGraph();
    else this.#addToGraph(this.#graph, slot);
  }

  /** With `order`: only if the key still has that vector. */
  delete(key: string, order?: number): void {
    const slot = this.#table.slotOf(key);
    if (slot === undefined) return;
    const present = this.#table.orderOf(slot);
    if (order !== undefined && order !== present) return;
    this.#table.delete(key);
    this.#graph?.forget(present);
    if (this.#table.size < this.#options.exactUpTo / 2) this.#dropGraph();
  }

  /** Frees everything. */
  close(): void {
    this.#isExactOnly = true;
    this.#dropGraph();
    this.deleteUpTo(this.order);
  }

  /** Deletes the vectors set up to this order. */
  deleteUpTo(order: number): void {
    for (const entry of this.entries()) if (entry.order <= order) this.delete(entry.key);
  }

  /** The score of two vectors as returned by the embedder. */
  score(one: Float32Array, other: Float32Array): number {
    const [a, b] = [prepare(one, this.#metric), prepare(other, this.#metric)];
    return this.#metric.score(this.#metric.nearness(a, 0, b));
  }

  /** Up to `count` keys with a score of at least `threshold`, best first, equal scores by key. */
  async nearest(vector: Float32Array, count: number, threshold: number): Promise<Candidate[]> {
    const query = prepare(vector, this.#metric);
    const least = this.#metric.leastNearness(threshold);
    const best = new BestMatches(count, -least);
    const graph = this.#isGraphComplete ? this.#graph : undefined;
    if (graph === undefined) await this.#offerAll(query, best);
    else this.#offerNear(graph, query, count, least, best);
    return best.sorted().flatMap(({ key, distance }) => {
      const order = this.orderOf(key);
      const score = this.#metric.score(-distance);
      return order === undefined || score < threshold ? [] : [{ key, score, order }];
    });
  }

  async #offerAll(query: Float32Array, best: BestMatches): Promise<void> {
    const table = this.#table;
    const slotsPerTurn = Math.max(1, Math.floor(WORK_PER_TURN / table.dimensions));
    for (let slot = 0; slot < table.keys.length; slot++) {
      if (slot > 0 && slot % slotsPerTurn === 0) await nextTurn();
      this.#offer(slot, query, best);
    }
  }

  #offerNear(graph: Graph, query: Float32Array, count: number, least: number, best: BestMatches): void {
    for (let wanted = count; ; wanted *= 4) {
      const slots = graph.near(query, Math.min(wanted, graph.size));
      const last = slots.at(-1);
      // Stop at enough, at all there are, or when the rest is too far away.
      if (
        slots.length < count &&
        wanted < graph.size &&
        (last === undefined || this.#near(last, query) >= least)
      )
        continue;
      for (const slot of slots) this.#offer(slot, query, best);
      return;
    }
  }

  #near(slot: number, query: Float32Array): number {
    return this.#metric.nearness(this.#table.rows, slot * this.#table.dimensions, query);
  }

  #offer(slot: number, query: Float32Array, best: BestMatches): void {
    const key = this.#table.keys[slot];
    if (key === undefined) return;
    const distance = -this.#near(slot, query);
    if (distance <= best.furthest) best.offer(key, distance);
  }

  #considerGraph(): void {
    const { exactUpTo, metric, dimensions, report } = this.#options;
    if (this.#isExactOnly || this.#table.size <= exactUpTo) return;
    try {
      this.#graph = (this.#options.openGraph ?? openGraph)(metric, dimensions);
      this.#isExactOnly = this.#graph === undefined;
    } catch (error) {
      this.#isExactOnly = true;
      report(toError(error));
    }
    if (this.#graph !== undefined) this.#fill(this.#graph).catch((error) => report(toError(error)));
  }

  /** Vectors set meanwhile are added by `set`. */
  async #fill(graph: Graph): Promise<void> {
    const table = this.#table;
    let added = 0;
    for (let slot = 0; slot < table.keys.length; slot++) {
      if (this.#graph !== graph) return;
      if (table.keys[slot] === undefined || graph.has(table.orderOf(slot))) continue;
      this.#addToGraph(graph, slot);
      if (++added % ADDED_PER_TURN === 0) await idleTurn();
    }
    this.#isGraphComplete = this.#graph === graph;
  }

  #addToGraph(graph: Graph, slot: number): void {
    try {
      graph.add(this.#table.orderOf(slot), slot, this.#table.row(slot));
    } catch (error) {
      this.#isExactOnly = true;
      this.#dropGraph();
      this.#options.report(toError(error));
      return;
    }
    // More forgotten than live vectors: searches would spend most of their time on forgotten ones.
    if (graph.forgotten > this.#table.size) {
      this.#dropGraph();
      this.#considerGraph();
    }
  }

  #dropGraph(): void {
    this.#graph = undefined;
    this.#isGraphComplete = false;
  }
}
