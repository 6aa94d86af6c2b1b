// Bounds that several parts of the library hold to.

/**
 * Most entries that can be kept in this process. V8's Map holds 2^24 keys, those deleted since it was last rebuilt among
 * them, and rebuilds itself without growing only when half of its places are such: so no more than half may be in use.
 */
export const MOST_ENTRIES = 2 ** 23;
