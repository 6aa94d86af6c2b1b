// How far a word is from the part of a text that comes closest to it, all places at once: the bit-parallel algorithm of
// Myers (1999) in the form of Hyyrö (2003), which counts a swap of neighbours as one edit. A row of the edit table
// is a character of the word; 32 rows lie in one integer.

const ROWS = 32;
const ASCII = 128;

/** A bit per kind of ASCII character: letters have one each, whatever their case, all others share six. */
const KIND_BIT = Int32Array.from({ length: ASCII }, (_, unit) => {
  const lower = unit | 0x20;
  const isLetter = lower >= 0x61 && lower <= 0x7a;
  return 1 << (isLetter ? lower - 0x61 : 26 + (unit % 6));
});

/** The kinds of characters in a text that is plain ASCII; 0 for any other. */
export function asciiKinds(text: string): number {
  let units = 0;
  let kinds = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    units |= unit;
    kinds |= KIND_BIT[unit & (ASCII - 1)]!;
  }
  return units < ASCII ? kinds : 0;
}

export class WordMatcher {
  /** In code points. */
  readonly length: number;
  readonly blocks: number;
  /** Where the match last found ends: the number of characters before that place. */
  end = 0;
  /** Which rows hold a character, block after block; `#symbols` says where its blocks begin. Symbol 0: in no row. */
  readonly #rows: Int32Array;
  readonly #symbols: ReadonlyMap<number, number>;
  /** The first block of each ASCII character, upper case like lower. */
  readonly #asciiRows = new Int32Array(ASCII);
  readonly #kinds: number;
  /** How many rows hold a character of each kind. */
  readonly #rowsOfKind = new Int32Array(32);
  readonly #rowsBeyondAscii: number;
  readonly #columns: Int32Array;

  /** `points`: at least one, folded. */
  constructor(points: readonly number[]) {
    this.length = points.length;
    this.blocks = Math.ceil(points.length / ROWS);
    this.#columns = new Int32Array(4 * this.blocks);
    const symbols = new Map<number, number>();
    for (const point of points) if (!symbols.has(point)) symbols.set(point, (symbols.size + 1) * this.blocks);
    this.#symbols = symbols;
    this.#rows = new Int32Array((symbols.size + 1) * this.blocks);
    for (const [row, point] of points.entries()) {
      this.#rows[symbols.get(point)! + Math.floor(row / ROWS)]! |= 1 << (row % ROWS);
    }

    let kinds = 0;
    let beyondAscii = 0;
    for (const point of points) {
      if (point >= ASCII) {
        beyondAscii++;
        continue;
      }
      kinds |= KIND_BIT[point]!;
      this.#rowsOfKind[31 - Math.clz32(KIND_BIT[point]!)]! += 1;
      const lower = this.#rows[symbols.get(point)!]!;
      this.#asciiRows[point] = lower;
      this.#asciiRows[String.fromCharCode(point).toUpperCase().charCodeAt(0)] = lower;
    }
    this.#kinds = kinds;
    this.#rowsBeyondAscii = beyondAscii;
  }

  /** A distance that no text of these kinds can beat: each character it lacks costs an edit. */
  leastDistance(kinds: number): number {
    let least = this.#rowsBeyondAscii;
    for (let missing = this.#kinds & ~kinds; missing !== 0; missing &= missing - 1) {
      least += this.#rowsOfKind[31 - Math.clz32(missing & -missing)]!;
    }
    return least;
  }

  /** The distance to the closest part of a plain ASCII text; for words of one block. */
  distanceInAscii(text: string): number {
    const asciiRows = this.#asciiRows;
    const lastRow = this.length - 1;
    let up = -1; // rows where the distance grows downwards, and where it shrinks
    let down = 0;
    let diagonal = 0;
    let rowsBefore = 0;
    let distance = this.length;
    let best = distance;
    for (let i = 0; i < text.length; i++) {
      const rows = asciiRows[text.charCodeAt(i)]!;
      const swapped = ((~diagonal & rows) << 1) & rowsBefore;
      diagonal = (((rows & up) + up) ^ up) | rows | down | swapped;
      const rise = down | ~(diagonal | up);
      const fall = diagonal & up;
      distance += ((rise >>> lastRow) & 1) - ((fall >>> lastRow) & 1);
      if (distance < best) best = distance;
      // The row above the first stays 0: a match may begin anywhere.
      up = (fall << 1) | ~(diagonal | (rise << 1));
      down = (rise << 1) & diagonal;
      rowsBefore = rows;
    }
    return best;
  }
}
