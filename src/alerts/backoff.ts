// How long to wait before a failed delivery is tried again.

const FIRST_MS = 5_000;
const LONGEST_MS = 300_000;

/** After so many attempts a message is given up; with the delays below that is after about a quarter of an hour. */
export const MOST_ATTEMPTS = 10;

/**
 * Doubles with every failure up to five minutes. Half of it is chance, so that many processes whose destination was down do
 * not come back at once. What the destination asked for is the least.
 */
export function retryDelayMs(failures: number, random: number, askedMs: number): number {
  const delay = Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), LONGEST_MS);
  return askedMs + delay * (0.5 + random / 2);
}
