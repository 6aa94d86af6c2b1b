// A fuzzy query: the words of a text, each matched where it comes closest in the key, in any order.
import { AsciiText } from "./ascii-text.ts";
import { foldText } from "./folded-text.ts";
import { WordMatcher } from "./word-matcher.ts";

/** Greater than any distance: the key does not match. */
const OUT = Number.POSITIVE_INFINITY;

/** Keys of more UTF-16 units are matched in parts of this many code points. */
const LONG = 4_096;
const PART = 1_024;

/** How many times more work a character is if the text must be folded first. */
const FOLDING_WORK = 16;

export class FuzzyQuery {
  /** In code points, without the space between words. */
  readonly length: number;
  /** Longest first, because it rules out most keys. */
  readonly #words: readonly WordMatcher[];
  readonly #workPerCharacter: number;
  readonly #ascii = new AsciiText();
  /** The number of words. */
  readonly words: number;
  /** The work done for the last key, in units of about 5 ns. */
  work = 0;

  constructor(text: string) {
    const words = wordsOf(text).map((points) => new WordMatcher(points));
    this.#words = words.sort((a, b) => b.length - a.length);
    this.words = words.length;
    this.length = words.reduce((sum, word) => sum + word.length, 0);
    this.#workPerCharacter = words.reduce((sum, word) => sum + word.blocks, 0);
  }

  /** The sum over the words of the distance to the closest part of the key; OUT if it exceeds `furthest`. */
  distance(key: string, furthest: number): number {
    this.work = 8 + key.length * this.#workPerCharacter;
    return this.#ascii.load(key) ? this.#distanceInAscii(furthest) : this.#distanceInFolded(key, furthest);
  }

  #distanceInAscii(furthest: number): number {
    const text = this.#ascii;
    let distance = 0;
    for (const word of this.#words) distance += word.leastDistance(text.kinds);
    for (const word of this.#words) {
      if (distance > furthest) return OUT;
      distance += word.distanceInAscii(text) - word.leastDistance(text.kinds);
    }
    return distance > furthest ? OUT : distance;
  }

  #distanceInFolded(key: string, furthest: number): number {
    this.work *= FOLDING_WORK;
    const { points } = foldText(key);
    let distance = 0;
    for (const word of this.#words) {
      word.begin();
      word.feed(points);
      distance += word.distance;
      if (distance > furthest) return OUT;
    }
    return distance;
  }

  /** Whether the key must be matched in steps. */
  isLong(key: string): boolean {
    return key.length > LONG;
  }

  /** The distance, in steps that yield their work. No other key may be matched in between. */
  *distanceInSteps(key: string): Generator<number, number> {
    for (const word of this.#words) word.begin();
    for (let at = 0; at < key.length; ) {
      const part = foldText(key, at, PART);
      for (const word of this.#words) word.feed(part.points);
      yield this.#workOn(part.next - at);
      at = part.next;
    }
    return this.#words.reduce((sum, word) => sum + word.distance, 0);
  }

  /** From the first matched character to the last, in UTF-16 units of the key; also in steps. */
  *range(key: string): Generator<number, readonly [start: number, end: number]> {
    const points: number[] = [];
    const starts: number[] = [];
    const ends: number[] = [];
    for (const word of this.#words) word.begin();
    for (let at = 0; at < key.length; ) {
      const part = foldText(key, at, PART);
      for (const word of this.#words) word.feed(part.points);
      points.push(...part.points);
      starts.push(...part.starts);
      ends.push(...part.ends);
      yield this.#workOn(part.next - at);
      at = part.next;
    }
    let first = key.length;
    let last = 0;
    for (const word of this.#words) {
      const { start, end } = word.locate(points);
      if (start === end) continue;
      first = Math.min(first, starts[start]!);
      last = Math.max(last, ends[end - 1]!);
    }
    return first < last ? [first, last] : [0, 0];
  }

  #workOn(units: number): number {
    return FOLDING_WORK * (8 + units * this.#workPerCharacter);
  }
}

function wordsOf(text: string): number[][] {
  const words: number[][] = [];
  let isInside = false;
  for (const point of foldText(text).points) {
    const isSpace = /\s/u.test(String.fromCodePoint(point));
    if (!isSpace && !isInside) words.push([]);
    if (!isSpace) words.at(-1)!.push(point);
    isInside = !isSpace;
  }
  return words;
}
