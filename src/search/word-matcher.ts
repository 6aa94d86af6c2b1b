// The edit distance of a word to the closest part of a text: the bit-parallel algorithm of Myers (1999) in the form of
// Hyyrö (2003), which counts a swap of neighbours as one edit. A row of the edit table is a character of the word, a column
// one of the text; 32 rows are packed into one integer, a block.
import { ASCII, type AsciiText, kindOf } from "./ascii-text.ts";

const ROWS = 32;

export class WordMatcher {
  /** In code points. */
  readonly length: number;
  readonly blocks: number;
  readonly #points: readonly number[];
  /** For each character the rows that hold it, block by block; index 0 is for characters the word lacks. */
  readonly #rows: Int32Array;
  readonly #rowsAt = new Map<number, number>();
  /** The same for ASCII characters, ignoring case. */
  readonly #asciiRowsAt = new Int32Array(ASCII);
  readonly #asciiRows = new Int32Array(ASCII);
  readonly #kinds: number;
  /** The number of rows with a character of each kind. */
  readonly #rowsOfKind = new Int32Array(32);
  #rowsBeyondAscii = 0;
  /** Up, down, diagonal and rows of the previous column, block by block. */
  readonly #column: Int32Array;
  #anchored = false;
  #columns = 0;
  #distance = 0;
  #best = 0;
  #end = 0;
  #endsAlike = false;

  /** `points`: at least one, folded. */
  constructor(points: readonly number[]) {
    this.length = points.length;
    this.blocks = Math.ceil(points.length / ROWS);
    this.#points = points;
    this.#column = new Int32Array(4 * this.blocks);
    for (const point of points) {
      if (!this.#rowsAt.has(point)) this.#rowsAt.set(point, (this.#rowsAt.size + 1) * this.blocks);
    }
    this.#rows = new Int32Array((this.#rowsAt.size + 1) * this.blocks);
    let kinds = 0;
    for (const [row, point] of points.entries()) {
      this.#rows[this.#rowsAt.get(point)! + Math.floor(row / ROWS)]! |= 1 << (row % ROWS);
      if (point < ASCII) {
        kinds |= 1 << kindOf(point);
        this.#rowsOfKind[kindOf(point)]! += 1;
      } else {
        this.#rowsBeyondAscii++;
      }
    }
    this.#kinds = kinds;
    for (let unit = 0; unit < ASCII; unit++) {
      const at = this.#rowsAt.get(String.fromCharCode(unit).toLowerCase().charCodeAt(0)) ?? 0;
      this.#asciiRowsAt[unit] = at;
      this.#asciiRows[unit] = this.#rows[at]!;
    }
  }

  /** A lower bound for texts with these kinds of characters: each character of the word they lack costs an edit. */
  leastDistance(kinds: number): number {
    let least = this.#rowsBeyondAscii;
    for (let missing = this.#kinds & ~kinds; missing !== 0; missing &= missing - 1) {
      least += this.#rowsOfKind[31 - Math.clz32(missing & -missing)]!;
    }
    return least;
  }

  /** The distance to the closest part of a text. */
  distanceInAscii(text: AsciiText): number {
    if (this.blocks === 1) return this.#distanceInOneBlock(text.bytes, text.length);
    const columns = new Int32Array(text.length);
    for (let i = 0; i < text.length; i++) columns[i] = this.#asciiRowsAt[text.bytes[i]!]!;
    this.begin();
    this.#scan(columns);
    return this.#best;
  }

  /** The distance to the closest part of what was fed since `begin`. */
  get distance(): number {
    return this.#best;
  }

  /**
   * The closest part of a text that was fed completely. Of several, one that ends like the word, else the first to end; of
   * those, one that begins like the word, else the shortest.
   */
  locate(text: readonly number[]): { readonly start: number; readonly end: number } {
    const end = this.#end;
    // Searching backwards from the end, the match cannot be longer than this.
    const before = text.slice(Math.max(0, end - this.length - this.#best), end).reverse();
    const backwards = new WordMatcher([...this.#points].reverse());
    backwards.begin();
    backwards.#anchored = true;
    backwards.feed(before);
    return { start: end - backwards.#end, end };
  }

  /** Starts a new text. */
  begin(): void {
    const column = this.#column;
    column.fill(0);
    for (let at = 0; at < column.length; at += 4) column[at] = -1;
    this.#anchored = false;
    this.#columns = 0;
    this.#distance = this.length;
    this.#best = this.length;
    this.#end = 0;
    this.#endsAlike = false;
  }

  /** Processes the text or its next part. */
  feed(text: readonly number[]): void {
    this.#scan(this.#columnsOf(text));
  }

  #columnsOf(text: readonly number[]): Int32Array {
    const columns = new Int32Array(text.length);
    for (let i = 0; i < text.length; i++) columns[i] = this.#rowsAt.get(text[i]!) ?? 0;
    return columns;
  }

  #distanceInOneBlock(bytes: Uint8Array, length: number): number {
    const asciiRows = this.#asciiRows;
    const lastRow = this.length - 1;
    let up = -1; // rows at which the distance is one more than in the row above; `down`: one less
    let down = 0;
    let diagonal = 0; // rows at which it is the same as one row and one column before
    let rowsBefore = 0;
    let distance = this.length;
    let best = distance;
    for (let i = 0; i < length; i++) {
      const rows = asciiRows[bytes[i]!]!;
      const swapped = ((~diagonal & rows) << 1) & rowsBefore;
      diagonal = (((rows & up) + up) ^ up) | rows | down | swapped;
      const rise = down | ~(diagonal | up); // rows at which it is one more than in the column before
      const fall = diagonal & up;
      distance += ((rise >>> lastRow) & 1) - ((fall >>> lastRow) & 1);
      if (distance < best) best = distance;
      // Nothing is shifted in: the distance above the first row stays 0, because a match may begin anywhere.
      up = (fall << 1) | ~(diagonal | (rise << 1));
      down = (rise << 1) & diagonal;
      rowsBefore = rows;
    }
    return best;
  }

  /**
   * The same over any number of blocks; carries leave one block at the bottom and enter the next at the top. If anchored,
   * a match must begin at the start of the text.
   */
  #scan(columns: Int32Array): void {
    const { blocks } = this;
    const rowsOf = this.#rows;
    const column = this.#column;
    const lastRow = (this.length - 1) % ROWS;
    const anchored = this.#anchored;
    let distance = this.#distance;
    let best = this.#best;
    let endsAlike = this.#endsAlike;
    for (let i = 0; i < columns.length; i++) {
      let riseIn = anchored ? 1 : 0;
      let fallIn = 0;
      let swapIn = 0;
      let rise = 0;
      let fall = 0;
      for (let block = 0; block < blocks; block++) {
        const at = 4 * block;
        const up = column[at]!;
        const down = column[at + 1]!;
        const rows = rowsOf[columns[i]! + block]!;
        const swappable = ~column[at + 2]! & rows;
        const swapped = ((swappable << 1) | swapIn) & column[at + 3]!;
        const matched = rows | fallIn;
        const diagonal = (((matched & up) + up) ^ up) | matched | down | swapped;
        rise = down | ~(diagonal | up);
        fall = diagonal & up;
        const shiftedRise = (rise << 1) | riseIn;
        column[at] = (fall << 1) | fallIn | ~(diagonal | shiftedRise);
        column[at + 1] = shiftedRise & diagonal;
        column[at + 2] = diagonal;
        column[at + 3] = rows;
        riseIn = rise >>> 31;
        fallIn = fall >>> 31;
        swapIn = swappable >>> 31;
      }
      distance += ((rise >>> lastRow) & 1) - ((fall >>> lastRow) & 1);
      if (distance > best || (distance === best && endsAlike)) continue;
      const isAlike = ((rowsOf[columns[i]! + blocks - 1]! >>> lastRow) & 1) === 1;
      if (distance === best && !isAlike) continue;
      best = distance;
      this.#end = this.#columns + i + 1;
      endsAlike = isAlike;
    }
    this.#columns += columns.length;
    this.#distance = distance;
    this.#best = best;
    this.#endsAlike = endsAlike;
  }
}
