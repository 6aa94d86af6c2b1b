// Limits shared by several parts of the library.

/**
 * Maximum number of entries in this process. V8's Map holds 2^24 keys, including those deleted since its last rehash, and
 * rehashes without growing only when half of its slots are deleted ones: so at most half of them may be in use.
 */
export const MOST_ENTRIES = 2 ** 23;
