// A segment of a glob pattern between stars: a sequence of positions for one character each.

/**
 * What a position accepts: the code points in one of the ranges or, negated, in none of them. A literal position takes one
 * UTF-16 unit, any other a whole character as a reader sees it.
 */
export interface Place {
  readonly ranges: readonly (readonly [low: number, high: number])[];
  readonly negated: boolean;
  /** Characters of several code points. */
  readonly clusters?: ReadonlySet<string>;
  readonly isLiteral?: boolean;
}

export const isLiteral = ({ isLiteral = false }: Place): boolean => isLiteral;

/** Whether a position accepts a character; for a literal one, a unit. */
export function acceptsCluster(place: Place, cluster: string): boolean {
  const point = cluster.codePointAt(0)!;
  const isOne = cluster.length === (point > 0xffff ? 2 : 1);
  if (isOne) return accepts(place, point);
  return place.clusters?.has(cluster) === true ? !place.negated : place.negated;
}

const BITS = 32;
/** Up to this many comparisons the simple search is faster. */
const SIMPLE_SEARCH = 4_096;

export class GlobSegment {
  readonly length: number;
  readonly places: readonly Place[];
  readonly #literal: string | undefined;
  #shiftAnd: ShiftAnd | undefined;

  constructor(places: readonly Place[]) {
    this.length = places.length;
    this.places = places;
    this.#literal = literalOf(places);
  }

  isAt(key: string, at: number): boolean {
    if (this.#literal !== undefined) return key.startsWith(this.#literal, at);
    for (let place = 0; place < this.length; place++) {
      if (!accepts(this.places[place]!, key.charCodeAt(at + place))) return false;
    }
    return true;
  }

  /** The first index from `from` on where the segment matches and ends before `end`, or -1. */
  find(key: string, from: number, end: number): number {
    if ((end - from) * this.length > SIMPLE_SEARCH) {
      this.#shiftAnd ??= new ShiftAnd(this.places);
      return this.#shiftAnd.find(key, from, end);
    }
    if (this.#literal !== undefined) {
      const found = key.indexOf(this.#literal, from);
      return found + this.length <= end ? found : -1;
    }
    for (let at = from; at + this.length <= end; at++) if (this.isAt(key, at)) return at;
    return -1;
  }
}

function accepts({ ranges, negated }: Place, unit: number): boolean {
  for (let i = 0; i < ranges.length; i++) {
    const range = ranges[i]!;
    if (range[0] <= unit && unit <= range[1]) return !negated;
  }
  return negated;
}

function literalOf(places: readonly Place[]): string | undefined {
  let literal = "";
  for (const { ranges, negated } of places) {
    const [range, another] = ranges;
    if (negated || range === undefined || another !== undefined || range[0] !== range[1]) return undefined;
    literal += String.fromCharCode(range[0]);
  }
  return literal;
}

/**
 * Shift-and search (Baeza-Yates and Gonnet 1992), which never backtracks: bit i of the state says that the first i + 1
 * positions match the characters ending here; each word holds 32 positions.
 */
class ShiftAnd {
  readonly #places: readonly Place[];
  readonly #state: Int32Array;
  readonly #lastBit: number;
  /** Where ranges begin or end: units between two borders are accepted by the same positions. */
  readonly #borders: readonly number[];
  readonly #masks: (Int32Array | undefined)[] = [];
  readonly #maskOfUnit = new Map<number, Int32Array>();

  constructor(places: readonly Place[]) {
    this.#places = places;
    this.#state = new Int32Array(Math.ceil(places.length / BITS));
    this.#lastBit = 1 << ((places.length - 1) % BITS);
    const borders = places.flatMap(({ ranges }) => ranges.flatMap(([low, high]) => [low, high + 1]));
    this.#borders = [...new Set(borders)].sort((a, b) => a - b);
  }

  find(key: string, from: number, end: number): number {
    const state = this.#state.fill(0);
    const words = state.length;
    const lastBit = this.#lastBit;
    for (let at = from; at < end; at++) {
      const unit = key.charCodeAt(at);
      const mask = this.#maskOfUnit.get(unit) ?? this.#maskFor(unit);
      let carried = 1;
      for (let word = 0; word < words; word++) {
        const before = state[word]!;
        state[word] = ((before << 1) | carried) & mask[word]!;
        carried = before >>> (BITS - 1);
      }
      if ((state[words - 1]! & lastBit) !== 0) return at + 1 - this.#places.length;
    }
    return -1;
  }

  /** The positions that accept a unit. */
  #maskFor(unit: number): Int32Array {
    const stretch = this.#stretchOf(unit);
    let mask = this.#masks[stretch];
    if (mask === undefined) {
      mask = new Int32Array(this.#state.length);
      for (const [at, place] of this.#places.entries()) {
        if (accepts(place, unit)) mask[Math.floor(at / BITS)]! |= 1 << (at % BITS);
      }
      this.#masks[stretch] = mask;
    }
    this.#maskOfUnit.set(unit, mask);
    return mask;
  }

  /** How many borders are at or below the unit. */
  #stretchOf(unit: number): number {
    let low = 0;
    let high = this.#borders.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#borders[middle]! <= unit) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
