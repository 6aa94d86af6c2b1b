// What one request on its way through the cache knows, and what all of them share.
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

/** What the visits of one HTTP cache share. */
export interface LookupHost<Request> {
  readonly options: CheckedOptions<Request>;
  readonly statusField: StatusField;
  readonly prepared: ReadyResponses;
  readonly unstorable: HitForMiss;
  /** Request fields that are part of the key. */
  readonly keyed: ReadonlySet<string>;
  /** For how long expired responses are kept; grows with what handlers ask for. */
  readonly keep: { seconds: number };
  /** The options of a getOrSet. */
  readonly loadTerms: (tags: readonly string[], mayServeStale: boolean, isForced: boolean) => GetOrSetOptions;
  /** Undefined where the cache cannot be asked so. */
  readonly look: SyncPeek | undefined;
  /** Milliseconds by the calendar: what is stored is read by other processes. */
  now(): number;
  /** The same, behind by up to COARSE_LAG_MS where the clock can say it for less. */
  coarseNow(): number;
  /** As `after` of a clock. */
  after(delayMs: number, run: () => void): Timer;
  /** 11 characters, never the same twice. */
  token(): string;
  told(event: "hit" | "miss" | "store", key: string, request: Request): void;
  readonly failed: (error: unknown) => void;
  pass(exchange: Exchange<Request>, forwarded: Forwarded): Promise<void>;
}

/** What a load gives to those who wait for it when its own client left: one of them has to begin again. */
export const ABORTED = "aborted";

export interface LookupState<Request> {
  readonly host: LookupHost<Request>;
  readonly exchange: Exchange<Request>;
  readonly directives: RequestDirectives;
  readonly key: string;
  readonly tags: readonly string[];
  /** One moment for all its decisions, so that they agree. */
  readonly now: number;
  /** The client has its answer, or is getting it from the handler. */
  isAnswered: boolean;
  /** The handler was called for this client. */
  isLeading: boolean;
  /** The one call of the handler that this request has caused. */
  call: Promise<StoredValue | undefined> | undefined;
  /** A stale response may be returned at once while another load refreshes it. */
  readonly mayServeStale: boolean;
  /** What the handler threw, where nothing was sent. */
  thrown: { readonly error: unknown } | undefined;
  /** Answers with a stored response. `said`: what the status field says in place of a hit. */
  answer(stored: ReadyResponse, value: StoredValue, said?: string): void;
}

export class HandlerFailure extends Error {
  /** The request whose handler it was. */
  readonly visit: unknown;
  /** What it said; undefined: it threw. */
  readonly reply: Reply | undefined;

  constructor(visit: unknown, reply: Reply | undefined, cause?: unknown) {
    const what = reply === undefined ? "threw an error" : `answered with status ${reply.status}`;
    super(`the handler ${what}`, { cause });
    this.name = "HandlerFailure";
    this.visit = visit;
    this.reply = reply;
  }
}
