// Glob patterns over keys: `*`, `?`, `[a-z]`, `[^a]` and backslash escapes, as in Redis; `?` and a class stand for one character
// as a reader sees it.
import { describeArrival, InvalidKeyError } from "../errors.ts";
import { requirePattern } from "../keys.ts";
import { ClusteredKey, ClusterSearch, clustersOf, hasClusters } from "./cluster-search.ts";
import { GlobSegment, isLiteral, type Place } from "./glob-segment.ts";

export type Matcher = (key: string) => boolean;

/** In UTF-16 units. */
const MAX_PATTERN_LENGTH = 1_024;

/**
 * Compiles a pattern. Matching takes at most one step per character of the key and 32 characters of the pattern: there
 * is no backtracking. Throws InvalidKeyError for a pattern that is not a non-empty string of at most 1,024 characters, or
 * has an unclosed `[`.
 */
export function glob(pattern: string): Matcher {
  requirePattern(pattern);
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new InvalidKeyError(
      `pattern must be at most ${MAX_PATTERN_LENGTH} characters, got ${pattern.length}`,
      { hint: "Use a shorter pattern, such as a literal prefix and a *." },
    );
  }
  if (pattern === "*") return () => true;
  const runs = parse(pattern);
  const byUnit = unitMatcher(runs);
  if (runs.every(({ places }) => places.every(isLiteral))) return byUnit;
  let byCluster: Matcher | undefined;
  return (key) => {
    if (!hasClusters(key)) return byUnit(key);
    byCluster ??= clusterMatcher(runs);
    return byCluster(key);
  };
}

/** For keys whose characters are one unit each, and patterns of literals and stars. */
function unitMatcher(runs: readonly GlobSegment[]): Matcher {
  if (runs.length === 1) {
    const only = runs[0]!;
    return (key) => key.length === only.length && only.isAt(key, 0);
  }
  const first = runs[0]!;
  const last = runs.at(-1)!;
  const between = runs.slice(1, -1).filter((run) => run.length > 0);
  return (key) => matches(key, first, between, last);
}

function clusterMatcher(runs: readonly GlobSegment[]): Matcher {
  const searches = runs.map(({ places }) => new ClusterSearch(places));
  const first = searches[0]!;
  const last = searches.at(-1)!;
  const between = searches.slice(1, -1).filter((_, at) => runs[at + 1]!.length > 0);
  return (text) => {
    const key = new ClusteredKey(text);
    let at = first.endFrom(key, 0);
    if (at < 0 || searches.length === 1) return at === text.length;
    const end = last.startBefore(key, text.length);
    if (end < at) return false;
    for (const search of between) {
      at = search.find(key, at, end);
      if (at < 0) return false;
    }
    return true;
  };
}

/** The characters every match must start with: a store can narrow its scan by them. */
export function literalPrefix(pattern: string): string {
  return /^[^*?[\\]*/.exec(pattern)?.[0] ?? "";
}

/** Segments have a fixed length, so taking the first match of each leaves the most room for the next. */
function matches(
  key: string,
  first: GlobSegment,
  between: readonly GlobSegment[],
  last: GlobSegment,
): boolean {
  const end = key.length - last.length;
  if (first.length > end || !first.isAt(key, 0) || !last.isAt(key, end)) return false;
  let at = first.length;
  for (const run of between) {
    const found = run.find(key, at, end);
    if (found < 0) return false;
    at = found + run.length;
  }
  return true;
}

const ANY: Place = { ranges: [], negated: true };

/** The segments before, between and after the stars. */
function parse(pattern: string): readonly GlobSegment[] {
  const runs: GlobSegment[] = [];
  let places: Place[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === "*") {
      runs.push(new GlobSegment(places));
      places = [];
    } else if (character === "?") {
      places.push(ANY);
    } else if (character === "[") {
      const close = classEnd(pattern, at);
      places.push(characterClass(pattern.slice(at + 1, close)));
      at = close;
    } else {
      if (character === "\\" && at + 1 < pattern.length) at++;
      const unit = pattern.charCodeAt(at);
      places.push({ ranges: [[unit, unit]], negated: false, isLiteral: true });
    }
  }
  return [...runs, new GlobSegment(places)];
}

function classEnd(pattern: string, start: number): number {
  for (let at = start + 1; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++;
    else if (pattern[at] === "]" && at > start + 1) return at;
  }
  throw new InvalidKeyError(
    `pattern ${describeArrival(pattern)} has a [ at position ${start} that is never closed`,
    {
      hint: "Close the class with ] or write \\[ for the character itself.",
    },
  );
}

function characterClass(body: string): Place {
  const negated = body.startsWith("^");
  const characters = hasClusters(body) ? clustersOf(body) : body.split("");
  const ranges: [number, number][] = [];
  const clusters = new Set<string>();
  const pointOf = (character: string): number | undefined => {
    const point = character.codePointAt(0)!;
    return String.fromCodePoint(point) === character ? point : undefined;
  };
  const add = (character: string): void => {
    const point = pointOf(character);
    if (point === undefined) clusters.add(character);
    else ranges.push([point, point]);
  };
  for (let at = negated ? 1 : 0; at < characters.length; at++) {
    const hasNext = (): boolean => characters[at] === "\\" && at + 1 < characters.length;
    if (hasNext()) at++;
    const first = characters[at]!;
    if (characters[at + 1] !== "-" || at + 2 >= characters.length) {
      add(first);
      continue;
    }
    at += 2;
    if (hasNext()) at++;
    const last = characters[at]!;
    const [low, high] = [pointOf(first), pointOf(last)];
    // Only single code points have an order.
    if (low === undefined || high === undefined) for (const each of [first, "-", last]) add(each);
    else ranges.push(low <= high ? [low, high] : [high, low]);
  }
  return clusters.size === 0 ? { ranges, negated } : { ranges, negated, clusters };
}
