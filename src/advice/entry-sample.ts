// A sample of the entries: which tags they carry, how many an invalidation would hit, and how sure that is.
import type { EntryInfo, EntryPage } from "../cache/entry-pages.ts";
import type { InvalidationMark } from "../core/stats.ts";

/** Tags listed at most, those with the most entries. */
const MOST_TAGS = 200;
const MOST_PREFIXES = 6;

export interface TagCount {
  readonly tag: string;
  readonly entries: number;
  /** How far `entries` may be off, with 95 % certainty, or at most if the sample is ordered; 0 when counted exactly. */
  readonly margin: number;
  readonly bytes: number;
  /** Of all bytes, 0 to 1. */
  readonly share: number;
  /** The beginnings of its keys, most frequent first. */
  readonly prefixes: readonly (readonly [prefix: string, entries: number])[];
  /** In the last hour. */
  readonly invalidations: number;
  readonly lastInvalidation: string | undefined;
}

export interface EntrySample {
  readonly sampled: number;
  readonly total: number;
  readonly exact: boolean;
  /** The sample is the beginning of an ordered list: what it lacks may be anywhere. */
  readonly ordered: boolean;
  readonly tags: readonly TagCount[];
  /** Entries of the sample by state and by the beginnings of their keys. */
  readonly stale: number;
  readonly withoutTtl: number;
  readonly prefixes: readonly (readonly [prefix: string, entries: number])[];
  readonly withoutTtlPrefixes: readonly (readonly [prefix: string, entries: number])[];
  /** The largest values of the sample. */
  readonly largest: readonly { readonly key: string; readonly bytes: number }[];
}

interface Tally {
  entries: number;
  bytes: number;
  readonly prefixes: Map<string, number>;
}

/** Up to the first `:`, `(` or `/`, which is included. */
function prefixOf(key: string): string {
  const at = key.search(/[:(/]/);
  return at < 0 ? key.slice(0, 40) : key.slice(0, Math.min(at + 1, 40));
}

const add = (counts: Map<string, number>, name: string): void => {
  // A bound: keys without a common beginning would be listed one by one.
  if (counts.size < 1_000 || counts.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
};

const top = (counts: ReadonlyMap<string, number>, most: number): readonly (readonly [string, number])[] =>
  [...counts].toSorted(([, one], [, other]) => other - one).slice(0, most);

export interface SampleOptions {
  /** Infinity: all entries. */
  readonly limit: number;
  /** How many there are, as far as known. */
  readonly total: number;
  readonly marks: readonly InvalidationMark[];
  /** Whether the entries come in an order that has to do with their tags. */
  readonly isOrdered: boolean;
}

/** Reads pages until `limit` entries were seen. */
export async function sampleEntries(
  pages: AsyncIterable<EntryPage>,
  { limit, total, marks, isOrdered }: SampleOptions,
): Promise<EntrySample> {
  const tallies = new Map<string, Tally>();
  const [prefixes, withoutTtlPrefixes] = [new Map<string, number>(), new Map<string, number>()];
  const counts = { sampled: 0, bytes: 0, stale: 0, withoutTtl: 0 };
  let largest: { key: string; bytes: number }[] = [];
  let isWhole = true;
  const count = (entry: EntryInfo): void => {
    const prefix = prefixOf(entry.key);
    counts.sampled++;
    counts.bytes += entry.bytes;
    if (entry.state === "stale") counts.stale++;
    add(prefixes, prefix);
    if (entry.ttl === Number.POSITIVE_INFINITY) {
      counts.withoutTtl++;
      add(withoutTtlPrefixes, prefix);
    }
    if (largest.length < 5 || entry.bytes > (largest.at(-1)?.bytes ?? 0)) {
      largest.push({ key: entry.key, bytes: entry.bytes });
      largest = largest.toSorted((one, other) => other.bytes - one.bytes).slice(0, 5);
    }
    for (const tag of entry.tags) {
      const tally: Tally = tallies.get(tag) ?? { entries: 0, bytes: 0, prefixes: new Map() };
      // Beyond that, a tag that was not seen yet is rare.
      if (!tallies.has(tag) && tallies.size >= 20_000) continue;
      tallies.set(tag, tally);
      tally.entries++;
      tally.bytes += entry.bytes;
      add(tally.prefixes, prefix);
    }
  };
  for await (const { entries } of pages) {
    for (const entry of entries.slice(0, limit - counts.sampled)) count(entry);
    if (counts.sampled < limit) continue;
    isWhole = false;
    break;
  }
  for (const { tag } of marks) {
    // Worth listing although no entry carries it now.
    if (tag !== undefined && !tallies.has(tag))
      tallies.set(tag, { entries: 0, bytes: 0, prefixes: new Map() });
  }
  const all = isWhole ? counts.sampled : Math.max(total, counts.sampled);
  const factor = counts.sampled === 0 ? 0 : all / counts.sampled;
  const tags = [...tallies]
    .toSorted(([, one], [, other]) => other.entries - one.entries)
    .slice(0, MOST_TAGS)
    .map(([tag, tally]): TagCount => {
      const share = tally.entries / Math.max(1, counts.sampled);
      const own = marks.filter((mark) => mark.kind === "tag" && mark.tag === tag);
      const entries = Math.round(tally.entries * factor);
      return {
        tag,
        entries,
        margin: isWhole
          ? 0
          : isOrdered
            ? // Any of those that were not looked at may carry it, or none.
              Math.max(entries - tally.entries, tally.entries + all - counts.sampled - entries)
            : Math.ceil(1.96 * Math.sqrt((share * (1 - share)) / counts.sampled) * all),
        bytes: Math.round(tally.bytes * factor),
        share: counts.bytes === 0 ? 0 : tally.bytes / counts.bytes,
        prefixes: top(tally.prefixes, MOST_PREFIXES).map(([name, n]) => [name, Math.round(n * factor)]),
        invalidations: own.reduce((sum, mark) => sum + mark.count, 0),
        lastInvalidation: own.at(-1)?.at,
      };
    });
  return {
    sampled: counts.sampled,
    total: all,
    exact: isWhole,
    ordered: isOrdered,
    tags,
    stale: counts.stale,
    withoutTtl: counts.withoutTtl,
    prefixes: top(prefixes, 20),
    withoutTtlPrefixes: top(withoutTtlPrefixes, 3),
    largest,
  };
}
