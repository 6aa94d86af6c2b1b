// How long a server keeps a record, as memcached is told it.
import type { StoreRecord } from "../../core/record.ts";

/** Longer ones are taken for a time since the epoch. */
const LONGEST_RELATIVE = 30 * 24 * 3600;
/** Times since the epoch have 32 bits with a sign, and 0 is for ever. */
const LATEST = 2 ** 31 - 1;
/** A lifetime is computed some moments after the expiry it comes from: 999.8 ms were a second. */
const SLACK_MS = 10;

/**
 * The token of flag T. A server counts its own seconds: n of them take between n - 1 and n. One more makes sure of the
 * whole seconds of a lifetime, and is for records whose own expiry is held to exactly; without it the server drops the
 * record in time by itself. Nothing is kept for ever by mistake.
 */
export function lifetimeToken(lifetimeMs: number, isMore: boolean, serverNowMs: number): number {
  const seconds = Math.max(1, Math.floor((lifetimeMs + SLACK_MS) / 1_000) + (isMore ? 1 : 0));
  if (seconds <= LONGEST_RELATIVE) return seconds;
  const until = Math.floor(serverNowMs / 1_000) + seconds;
  return until > LATEST ? 0 : until;
}

/** Whether a record does no harm after its time: what depends on a stamp or a lease looks at more than its presence. */
export const isHarmlessLater = ({ kind }: StoreRecord): boolean => kind !== "entry";
