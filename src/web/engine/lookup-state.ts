// The state of one lookup, and what all lookups of an HTTP cache share.
import type { Timer } from "../../core/clock.ts";
import type { GetOrSetOptions } from "../../core/options.ts";
import type { SyncPeek } from "../../core/sync-peek.ts";
import type { Exchange, Reply } from "../message/exchange.ts";
import type { Forwarded, StatusField } from "../protocol/cache-status.ts";
import type { HitForMiss } from "./hit-for-miss.ts";
import type { CheckedOptions } from "./options.ts";
import type { ReadyResponse, ReadyResponses } from "./ready-response.ts";
import type { RequestDirectives } from "./request-directives.ts";
import type { StoredValue } from "./stored-response.ts";

/** Shared by all lookups of one HTTP cache. */
export interface LookupHost<Request> {
  readonly options: CheckedOptions<Request>;
  readonly statusField: StatusField;
  readonly readyResponses: ReadyResponses;
  readonly hitForMiss: HitForMiss;
  /** Request fields that are part of the key. */
  readonly keyedFields: ReadonlySet<string>;
  /** How long expired responses are kept; grows with the stale windows that handlers ask for. */
  readonly staleRetention: { seconds: number };
  /** Options for getOrSet. */
  readonly loadOptions: (
    tags: readonly string[],
    mayServeStale: boolean,
    isForced: boolean,
  ) => GetOrSetOptions;
  /** Undefined if the cache has no synchronous reads. */
  readonly syncPeek: SyncPeek | undefined;
  /** Wall-clock milliseconds: other processes read the stored times. */
  now(): number;
  /** A cheaper `now` that may lag by up to COARSE_LAG_MS. */
  coarseNow(): number;
  /** As `Clock.after`. */
  after(delayMs: number, run: () => void): Timer;
  /** 11 characters, unique. */
  token(): string;
  /** `reason`: see `HttpCacheDecision`. */
  emit(event: "hit" | "miss" | "store", key: string, exchange: Exchange<Request>, reason: string): void;
  notStored(reason: string, key: string, exchange: Exchange<Request>): void;
  readonly reportError: (error: unknown) => void;
  pass(exchange: Exchange<Request>, forwarded: Forwarded): Promise<void>;
}

/** The result for waiting requests when the client of a load disconnected: one of them loads again. */
export const ABORTED = "aborted";

export interface LookupState<Request> {
  readonly host: LookupHost<Request>;
  readonly exchange: Exchange<Request>;
  readonly directives: RequestDirectives;
  readonly key: string;
  readonly tags: readonly string[];
  /** Follows an added `max-age`. */
  readonly cacheControlExtra: string | undefined;
  /** Read once, so that all decisions of the lookup agree. */
  readonly now: number;
  /** The client got its response, or is getting it from the handler. */
  isAnswered: boolean;
  /** The handler was called for this client. */
  isLeading: boolean;
  /** The one handler call made for this request. */
  handlerCall: Promise<StoredValue | undefined> | undefined;
  /** Settles when the handler called for this client has returned; it may take longer than the fill waits for it. */
  forwarded: Promise<void> | undefined;
  /** Whether a stale response may be returned while another load refreshes it. */
  readonly mayServeStale: boolean;
  /** The handler called for this client answered with an error that a stored response may replace. */
  hasFailed: boolean;
  /** What the handler threw, if nothing was sent. */
  thrown: { readonly error: unknown } | undefined;
  /** Answers with a stored response. `cacheStatus` replaces the status field's text for a hit. */
  answer(stored: ReadyResponse, value: StoredValue, cacheStatus?: string): void;
}

/** Thrown by a load whose handler failed while a stored response may answer instead (stale-if-error). */
export class HandlerFailure extends Error {
  /** The lookup that called the handler. */
  readonly lookup: unknown;
  /** The handler's response, or undefined if it threw. */
  readonly reply: Reply | undefined;

  constructor(lookup: unknown, reply: Reply | undefined, cause?: unknown) {
    const what = reply === undefined ? "gave no response to store" : `answered with status ${reply.status}`;
    super(`the handler ${what}`, { cause });
    this.name = "HandlerFailure";
    this.lookup = lookup;
    this.reply = reply;
  }
}
