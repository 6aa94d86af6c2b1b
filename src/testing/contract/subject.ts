// What the contract suite is told: the backend under test, and the test runner that runs the cases.
import type { CacheConfig } from "../../config/types.ts";
import type { Backend } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import type { XCache } from "../../xcache.ts";

/** The two functions taken from a test runner; those of node:test, vitest and jest fit as they are. */
export interface ContractRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}

/** What the backend is meant to offer; cases hold it to this, and to refusing what it does not. */
export interface ContractOffers {
  /** Other processes see the same records: `second` must be given. */
  readonly shared: boolean;
  /** Keys can be listed. */
  readonly scan: boolean;
  /** The backend tells of changes, within `pushBoundMs`. */
  readonly push: boolean;
  /** How long a push may take, in milliseconds of the subject's time. Default: 1000. */
  readonly pushBoundMs?: number;
  /** Largest payload the store takes; a larger one must be refused. Default: no limit that the suite reaches. */
  readonly maxPayloadBytes?: number;
}

/** A backend opened for one case. The suite calls `backend.open` and `connect` itself. */
export interface OpenSubject {
  readonly backend: Backend;
  /** Another client of the same store, as another process would be. */
  second?(): Promise<Backend>;
  /** Lets this much of the store's time pass. Default: waits in real time. */
  advance?(ms: number): Promise<void>;
  /** The clock that the backends and the caches on them read. Default: the system's. */
  readonly clock?: Clock;
  /** Builds the cache of the semantic cases. Default: an XCache on `backend` that reads `clock`. */
  cache?(backend: Backend, config: CacheConfig): XCache;
  /** Called once at the end of the case, after every client was disconnected. */
  close(): Promise<void>;
}

/**
 * A backend under test. Each case opens it anew and uses keys of its own, so the store need not be emptied and cases
 * may run concurrently.
 */
export interface ContractSubject {
  readonly name: string;
  readonly offers: ContractOffers;
  open(): Promise<OpenSubject>;
}
