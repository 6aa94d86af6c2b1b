// What is searched for: the words of a text, each found wherever it comes closest, in any order.
import { AsciiText } from "./ascii-text.ts";
import { foldText } from "./folded-text.ts";
import { WordMatcher } from "./word-matcher.ts";

/** More than any distance: the key is out. */
const OUT = Number.POSITIVE_INFINITY;

/** How much more work a character is when the text must be folded first. */
const FOLDING_WORK = 16;

export class FuzzyQuery {
  /** In code points, without the space between words. */
  readonly length: number;
  /** The longest first: it rules out most keys. */
  readonly #words: readonly WordMatcher[];
  readonly #workPerCharacter: number;
  readonly #ascii = new AsciiText();
  /** How many there are. */
  readonly words: number;
  /** How much work the last key was, in about 5 ns. */
  work = 0;

  constructor(text: string) {
    const words = wordsOf(text).map((points) => new WordMatcher(points));
    this.#words = words.sort((a, b) => b.length - a.length);
    this.words = words.length;
    this.length = words.reduce((sum, word) => sum + word.length, 0);
    this.#workPerCharacter = words.reduce((sum, word) => sum + word.blocks, 0);
  }

  /** The sum over the words of the distance to the closest part of the key; OUT when it is more than `furthest`. */
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
      distance += word.distance(points);
      if (distance > furthest) return OUT;
    }
    return distance;
  }

  /** From the first matched character to the last, in UTF-16 units of the key. */
  range(key: string): readonly [start: number, end: number] {
    this.work = FOLDING_WORK * (8 + key.length * this.#workPerCharacter);
    const { points, starts, ends } = foldText(key);
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
