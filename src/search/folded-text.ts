// Text as fuzzy search compares it: normalised (NFKC) and case-folded code points that know where they came from.

/**
 * What can merge with what stands before it under NFKC: marks, the Thai and Lao AM, Hangul vowels and finals in all
 * their widths, and the halfwidth voicing marks. Cutting before anything else changes nothing, so each piece is folded on its own.
 */
const JOINS_BEFORE = /[\p{M}\u0e33\u0eb3\u1160-\u11ff\u3130-\u318f\ud7b0-\ud7fb\uff9e-\uffdc]/u;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

export interface FoldedText {
  readonly points: readonly number[];
  /** Where in the original, in UTF-16 units, the piece of each point starts and ends. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** Where in the original the rest begins. */
  readonly next: number;
}

/** More than any language joins; normalising takes the square of their number. */
const MOST_JOINED = 32;

/** `from`: the `next` of the part before. `most`: about so many points. */
export function foldText(text: string, from = 0, most = Number.POSITIVE_INFINITY): FoldedText {
  const points: number[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  let start = from;
  while (start < text.length && points.length < most) {
    const end = endOfPiece(text, start);
    for (const point of foldedPoints(text, start, end)) {
      points.push(point);
      starts.push(start);
      ends.push(end);
    }
    start = end;
  }
  return { points, starts, ends, next: start };
}

function endOfPiece(text: string, start: number): number {
  let end = start + widthAt(text, start);
  for (let joined = 0; joined < MOST_JOINED && end < text.length; joined++) {
    if (!joinsBefore(text.codePointAt(end)!)) break;
    end += widthAt(text, end);
  }
  return end;
}

function widthAt(text: string, index: number): number {
  return text.codePointAt(index)! > 0xffff ? 2 : 1;
}

// Both answers are kept per UTF-16 unit: the expressions are slow and keys repeat their characters. At most 65,536 each.
const knownJoins = new Map<number, boolean>();
const knownFolds = new Map<number, readonly number[]>();

function joinsBefore(point: number): boolean {
  if (point < 0x300) return false;
  let joins = knownJoins.get(point);
  if (joins === undefined) {
    joins = JOINS_BEFORE.test(String.fromCodePoint(point));
    if (point <= 0xffff) knownJoins.set(point, joins);
  }
  return joins;
}

function foldedPoints(text: string, start: number, end: number): readonly number[] {
  const unit = end - start === 1 ? text.charCodeAt(start) : -1;
  let points = knownFolds.get(unit);
  if (points === undefined) {
    points = Array.from(foldPiece(text.slice(start, end)), (character) => character.codePointAt(0)!);
    if (unit >= 0) knownFolds.set(unit, points);
  }
  return points;
}

/** Down, up and down again is what unites the likes of "ẞ", "ß" and "ss", "ς" and "σ", "ı" and "i". */
function foldPiece(piece: string): string {
  const folded = piece.normalize("NFKC").toLowerCase().toUpperCase().toLowerCase();
  return folded.normalize("NFKC").replace(IGNORABLE, "");
}
