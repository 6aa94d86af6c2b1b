// What a leading process does with a database's changes, whichever way they arrive.
import type { Clock } from "../../core/clock.ts";
import type { RowKey } from "../../core/db-session.ts";
import type { FeedCounts } from "./feed-status.ts";

/** A connection to the database for queries. */
export interface FeedLink {
  /** The process may end while the connection is open. */
  release(): void;
  /** Does not wait for a server that no longer answers. */
  close(): void;
}

/** The tables whose changes arrive. */
export interface FeedCatalogue {
  /** Changes with everything in it. */
  readonly version: string;
  /** By bare name, those whose rows a read can name. */
  readonly keys: ReadonlyMap<string, RowKey>;
  /** The bare names of all tables that a change can concern. */
  readonly names: ReadonlySet<string>;
}

/** The feed as its leader sees it. */
export interface LeaderHost<Link, Tables> {
  readonly clock: Clock;
  readonly counts: FeedCounts;
  readonly rows: boolean;
  readonly silentForMs: number;
  readonly isClosed: boolean;
  readonly catalogue: Tables;
  /** Reads the catalogue again. Returns the names of all tables before and now if it has changed. */
  refresh(sql: Link): Promise<readonly string[] | undefined>;
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

/** A database whose changes can be read as a stream. */
export interface ChangeSource<Link extends FeedLink, Tables extends FeedCatalogue> {
  open(): Promise<Link>;
  readCatalogue(sql: Link): Promise<Tables>;
  /** Whether some process holds the lock of a leader. */
  isLed(sql: Link, lockKey: bigint): Promise<boolean>;
  /** Resolves to false if another process leads; else leads until it fails. */
  lead(host: LeaderHost<Link, Tables>, sql: Link, lockKey: bigint): Promise<boolean>;
}

/** How often a changed schema or publication is looked for. */
export const catalogueMs = (silentForMs: number): number => 2.5 * silentForMs;

/** How often a feed proves that it is alive. */
export const beatMs = (silentForMs: number): number => silentForMs / 8;
