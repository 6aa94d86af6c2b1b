// Text as fuzzy search compares it: normalised (NFKC), case-folded code points with their positions in the original.

/**
 * Characters that NFKC may combine with the one before: marks, the Thai and Lao AM, Hangul vowels and finals in all widths,
 * and the halfwidth voicing marks. Splitting before any other character is safe, so each piece is folded separately.
 */
const JOINS_BEFORE = /[\p{M}\u0e33\u0eb3\u1160-\u11ff\u3130-\u318f\ud7b0-\ud7fb\uff9e-\uffdc]/u;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

export interface FoldedText {
  readonly points: readonly number[];
  /** For each point, where its piece starts and ends in the original, in UTF-16 units. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** Where the rest of the original begins. */
  readonly next: number;
}

/** More than any language combines; normalising takes quadratic time in their number. */
const MOST_JOINED = 32;

/** `from`: the `next` of the previous part. `most`: the approximate number of points to return. */
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

// Cached per UTF-16 unit, at most 65,536 each: the expressions are slow, and keys repeat their characters.
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

/** Lower, upper and lower case again makes "ẞ", "ß" and "ss" equal, as well as "ς" and "σ", and "ı" and "i". */
function foldPiece(piece: string): string {
  const folded = piece.normalize("NFKC").toLowerCase().toUpperCase().toLowerCase();
  return folded.normalize("NFKC").replace(IGNORABLE, "");
}
