// Suggests the valid name closest to an unknown one.

/** No suggestion for names longer than this; the work is quadratic. */
const LONGEST_NAME = 64;

/** The Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of adjacent characters. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const replace = last[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      let best = Math.min(last[j]! + 1, row[j - 1]! + 1, replace);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        best = Math.min(best, beforeLast[j - 2]! + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[to.length]!;
}

/** The name without naming conventions: `default_ttl`, `default-ttl` and `defaultTtl` are equal. */
const bare = (name: string): string => name.replace(/[-_+\s.]/g, "").toLowerCase();

const words = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[-_+\s.]+/)
    .filter((word) => word.length > 2);

function sharedWords(given: string, name: string): number {
  const known = words(name);
  return words(given).filter((word) => known.includes(word)).length;
}

/**
 * The one of `names` closest to `given`, or undefined when none is close. Spelling counts first, up to one edit per
 * three characters; then common words, so that `ttl` leads to `defaultTtl`. The first of equals wins.
 */
export function closestName(given: string, names: readonly string[]): string | undefined {
  if (given.length > LONGEST_NAME) return undefined;
  let best: string | undefined;
  let bestScore = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const distance = editDistance(bare(given), bare(name));
    const allowed = Math.max(1, Math.floor(Math.max(bare(given).length, bare(name).length) / 3));
    const shared = sharedWords(given, name);
    const score = distance <= allowed ? distance : shared > 0 ? LONGEST_NAME - shared : bestScore;
    if (score < bestScore) {
      best = name;
      bestScore = score;
    }
  }
  return best;
}

/** The end of a message about an unknown name: `did you mean "x"?`, or the whole list when nothing is close. */
export function suggestName(given: string, names: readonly string[]): string {
  const nearest = closestName(given, names);
  return nearest === undefined ? `use one of ${names.join(", ")}` : `did you mean "${nearest}"?`;
}
