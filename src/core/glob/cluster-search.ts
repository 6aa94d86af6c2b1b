// Matches segments of a glob pattern in keys whose characters consist of several units: a position that stands for one
// character takes a whole grapheme cluster (UAX #29), as a reader sees it.
import { unicodePattern } from "../lazy-builtin.ts";
import { acceptsCluster, isLiteral, type Place } from "./glob-segment.ts";

/** A key that may contain clusters of several units. Other keys are matched unit by unit, which is faster. */
export const hasClusters = (text: string): boolean => !PLAIN.test(text) && clustered().test(text);

const PLAIN = /^[ -~]*$/;
/** Whatever joins its neighbours or takes two units: marks, joiners, surrogates, conjoining jamo, a line break of two. */
const clustered = unicodePattern(
  String.raw`\r\n|[\u{10000}-\u{10ffff}\p{M}\p{Cf}\p{Cs}\u0d4e\u0e33\u0eb3\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\uff9e\uff9f]`,
);

let segmenter: Intl.Segmenter | undefined;

/** The grapheme clusters of a text. */
export function clustersOf(text: string): readonly string[] {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** A key with its grapheme clusters. */
export class ClusteredKey {
  readonly text: string;
  /** The cluster that begins at each unit; undefined inside of one. */
  readonly #clusters: (string | undefined)[];

  constructor(text: string) {
    this.text = text;
    this.#clusters = new Array<string | undefined>(text.length).fill(undefined);
    let at = 0;
    for (const cluster of clustersOf(text)) {
      this.#clusters[at] = cluster;
      at += cluster.length;
    }
  }

  clusterAt(at: number): string | undefined {
    return this.#clusters[at];
  }

  isBorder(at: number): boolean {
    return at === this.text.length || this.#clusters[at] !== undefined;
  }

  /** The cluster that ends here. */
  clusterBefore(at: number): string | undefined {
    if (at === 0 || !this.isBorder(at)) return undefined;
    let start = at - 1;
    while (this.#clusters[start] === undefined) start--;
    return this.#clusters[start];
  }
}

const BITS = 32;

/** One segment between stars. From each start it matches at most one stretch, and a later start ends later. */
export class ClusterSearch {
  readonly #places: readonly Place[];
  readonly #words: number;
  readonly #lastBit: number;
  /** The positions that take one unit; the others take a cluster. */
  readonly #literals: Int32Array;
  readonly #masks = new Map<string, Int32Array>();
  readonly #unitMasks = new Map<number, Int32Array>();

  constructor(places: readonly Place[]) {
    this.#places = places;
    this.#words = Math.ceil(places.length / BITS);
    this.#lastBit = 1 << ((places.length - 1) % BITS);
    this.#literals = this.#maskOf(isLiteral);
  }

  /** Where the stretch ends that begins here, or -1. */
  endFrom(key: ClusteredKey, from: number): number {
    let at = from;
    for (const place of this.#places) {
      const cluster = isLiteral(place) ? key.text[at] : key.clusterAt(at);
      if (cluster === undefined || !acceptsCluster(place, cluster)) return -1;
      at += cluster.length;
    }
    return at;
  }

  /** Where the stretch begins that ends here, or -1. */
  startBefore(key: ClusteredKey, end: number): number {
    let at = end;
    for (let place = this.#places.length - 1; place >= 0; place--) {
      const one = this.#places[place]!;
      const cluster = isLiteral(one) ? key.text[at - 1] : key.clusterBefore(at);
      if (cluster === undefined || !acceptsCluster(one, cluster)) return -1;
      at -= cluster.length;
    }
    return at;
  }

  /**
   * The end of the first stretch from `from` on that ends before `end`, or -1. Shift-and search as in glob-segment.ts; inside
   * a cluster, the positions that have taken its beginning stay.
   */
  find(key: ClusteredKey, from: number, end: number): number {
    const [words, literals] = [this.#words, this.#literals];
    const state = new Int32Array(words);
    for (let at = from; at < end; at++) {
      const cluster = key.clusterAt(at);
      const units = this.#unitMask(key.text.charCodeAt(at));
      const clusters = cluster === undefined ? undefined : this.#clusterMask(cluster);
      let carried = 1;
      for (let word = 0; word < words; word++) {
        const before = state[word]!;
        const literal = literals[word]!;
        const movable = clusters === undefined ? before & literal : before;
        const moved = (movable << 1) | carried;
        const stays = clusters === undefined ? before & ~literal : moved & clusters[word]!;
        state[word] = (moved & units[word]!) | stays;
        carried = movable >>> (BITS - 1);
      }
      const isComplete = (state[words - 1]! & this.#lastBit) !== 0;
      if (isComplete && (isLiteral(this.#places.at(-1)!) || key.isBorder(at + 1))) return at + 1;
    }
    return -1;
  }

  #unitMask(unit: number): Int32Array {
    let mask = this.#unitMasks.get(unit);
    if (mask === undefined) {
      const text = String.fromCharCode(unit);
      mask = this.#maskOf((place) => isLiteral(place) && acceptsCluster(place, text));
      this.#unitMasks.set(unit, mask);
    }
    return mask;
  }

  #clusterMask(cluster: string): Int32Array {
    let mask = this.#masks.get(cluster);
    if (mask === undefined) {
      if (this.#masks.size >= MOST_MASKS) this.#masks.clear();
      mask = this.#maskOf((place) => !isLiteral(place) && acceptsCluster(place, cluster));
      this.#masks.set(cluster, mask);
    }
    return mask;
  }

  #maskOf(accepts: (place: Place) => boolean): Int32Array {
    const mask = new Int32Array(this.#words);
    for (const [at, place] of this.#places.entries())
      if (accepts(place)) mask[Math.floor(at / BITS)]! |= 1 << (at % BITS);
    return mask;
  }
}

/** Clusters whose masks are kept: there may be any number of different ones. */
const MOST_MASKS = 1_000;
