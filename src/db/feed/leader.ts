// What a leading process does with a database's changes, whichever way they arrive.
import type { Clock } from "../../core/clock.ts";
import type { Catalogue } from "./catalogue.ts";
import type { FeedCounts } from "./feed-status.ts";
import type { LinkOptions, SqlLink } from "./link.ts";

/** The feed as its leader sees it. */
export interface LeaderHost {
  readonly clock: Clock;
  readonly counts: FeedCounts;
  readonly links: LinkOptions;
  readonly rows: boolean;
  readonly silentForMs: number;
  readonly isClosed: boolean;
  readonly catalogue: Catalogue;
  /** Reads the catalogue again. Returns the names of all tables before and now if it has changed. */
  refresh(sql: SqlLink): Promise<readonly string[] | undefined>;
  /** Resolves once the cache has confirmed; tries until then, or until `isOver`. */
  deliver(tags: readonly string[], isOver: () => boolean): Promise<void>;
  /** Every commit that was visible at `at` has been invalidated. Rejects if another process is to lead. */
  proven(at: number): Promise<void>;
  /** undefined: nothing is waited for. */
  waitFor(what: string | undefined): void;
  reached(position: string): void;
  /** From now on this process is the leader. */
  elected(): void;
}

/** Reads a stream of changes. */
export interface Leader {
  /** Resolves to false if another process leads; else leads until it fails. */
  lead(host: LeaderHost, sql: SqlLink, lockKey: bigint): Promise<boolean>;
}

/** How often a changed schema or publication is looked for. */
export const catalogueMs = (silentForMs: number): number => 2.5 * silentForMs;

/** How often a feed proves that it is alive. */
export const beatMs = (silentForMs: number): number => silentForMs / 8;

const LOCKED = `
SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (classid::bigint << 32 | objid::bigint) = $1`;

/** Whether some process holds the lock of a leader. */
export async function isLocked(sql: SqlLink, key: bigint): Promise<boolean> {
  return (await sql.query(LOCKED, [String(key)])).length > 0;
}
