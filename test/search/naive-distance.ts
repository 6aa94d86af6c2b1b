// A plain edit table, with a swap of neighbours as one edit (optimal string alignment).

type Points = readonly number[];

/** `isFree`: the word may begin anywhere in the text. The last row: distances to the parts that end at each place. */
function lastRow(word: Points, text: Points, isFree: boolean): number[] {
  const table: number[][] = [Array.from({ length: text.length + 1 }, (_, j) => (isFree ? 0 : j))];
  for (let i = 1; i <= word.length; i++) {
    const row = [i];
    for (let j = 1; j <= text.length; j++) {
      const same = word[i - 1] === text[j - 1] ? 0 : 1;
      row[j] = Math.min(table[i - 1]![j]! + 1, row[j - 1]! + 1, table[i - 1]![j - 1]! + same);
      if (i > 1 && j > 1 && word[i - 1] === text[j - 2] && word[i - 2] === text[j - 1]) {
        row[j] = Math.min(row[j]!, table[i - 2]![j - 2]! + 1);
      }
    }
    table.push(row);
  }
  return table[word.length]!;
}

/** To the closest part of the text. */
export function infixDistance(word: Points, text: Points): number {
  return Math.min(...lastRow(word, text, true));
}

/** To the whole text. */
function wholeDistance(word: Points, text: Points): number {
  return lastRow(word, text, false).at(-1)!;
}

/** The closest part: one that ends, then one that begins, like the word; else the first to end, then the shortest. */
export function closestPart(word: Points, text: Points): { start: number; end: number } {
  const distances = lastRow(word, text, true);
  const best = Math.min(...distances);
  const ends = [...distances.keys()].filter((place) => distances[place] === best);
  const end = ends.find((place) => place > 0 && text[place - 1] === word.at(-1)) ?? ends[0]!;
  const starts = Array.from({ length: end + 1 }, (_, back) => end - back).filter(
    (place) => wholeDistance(word, text.slice(place, end)) === best,
  );
  const start = starts.find((place) => place < end && text[place] === word[0]) ?? starts[0]!;
  return { start, end };
}
