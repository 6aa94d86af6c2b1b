// Records the handler's response on its way to the client and turns it into the stored one.

import type { Timer } from "../../core/clock.ts";
import type { Exchange, Reply, ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import { fieldOf, filterFields, type HeaderList, hasField, withField } from "../message/header-list.ts";
import { parseSeconds } from "../protocol/cache-control.ts";
import type { ForwardReason, StatusField } from "../protocol/cache-status.ts";
import { isNotModified, notModifiedHeaders } from "../protocol/conditional.ts";
import { makeEtag } from "../protocol/etag.ts";
import { formatHttpDate } from "../protocol/http-date.ts";
import { isPersonal, type StoragePlan } from "../protocol/policy.ts";
import { addedControl, ownControl, storableHeaders, withVary } from "../protocol/stored-headers.ts";
import { BodyCollector } from "./body-collector.ts";
import type { StoredHead } from "./stored-response.ts";

/** How a recorded response ended. */
export type RecordedOutcome =
  | {
      readonly kind: "whole";
      readonly head: StoredHead;
      readonly body: Uint8Array;
      readonly plan: StoragePlan;
      /** As the handler sent it. */
      readonly response: ResponseHead;
    }
  /** `reason`: see `HttpCacheDecision`. */
  | { readonly kind: "unstorable"; readonly reason: string }
  /** It ended early, so whether it was storable is unknown. */
  | { readonly kind: "aborted" }
  /** Withheld: the stored response is still valid. */
  | { readonly kind: "not-modified"; readonly response: ResponseHead }
  /** Withheld: the stored response may be served instead. `body` undefined: it is incomplete or too large. */
  | { readonly kind: "failed"; readonly response: ResponseHead; readonly body: Uint8Array | undefined };

export interface RecorderOptions {
  readonly exchange: Exchange;
  readonly statusField: StatusField;
  readonly reason: ForwardReason;
  readonly now: () => number;
  /** As `Clock.after`. */
  readonly after: (delayMs: number, run: () => void) => Timer;
  /** A body that is still open this long after its head is a stream: other requests do not wait for its end. */
  readonly streamAfterMs: number;
  readonly maxBodyBytes: number;
  readonly etag: "weak" | "strong";
  readonly cacheControlExtra: string | undefined;
  /** The names that are added to Vary. */
  readonly addedVary: (plan: StoragePlan) => readonly string[];
  /** The request to the handler carries the stored validators. */
  readonly isRevalidation: boolean;
  /** A stored response may be served instead of an error. */
  readonly coversErrors: boolean;
  /** How to store the response, or the reason not to. */
  readonly plan: (response: ResponseHead) => StoragePlan | string;
  /** Called when the response goes to the client. */
  readonly onSent: () => void;
}

/** Fields that describe content, which a 304 does not have. */
const BODY_FIELDS = new Set([
  "content-type",
  "content-length",
  "content-encoding",
  "content-range",
  "transfer-encoding",
]);

const WITHHOLD: Verdict = { head: undefined, wantsBody: false };
const WITHHOLD_AND_COLLECT: Verdict = { head: undefined, wantsBody: true };

export class ResponseRecorder implements Tap {
  readonly wantsWhole = true;
  readonly outcome: Promise<RecordedOutcome>;
  readonly #options: RecorderOptions;
  readonly #body: BodyCollector;
  #settle: (outcome: RecordedOutcome) => void = () => {};
  #response: ResponseHead | undefined;
  #plan: StoragePlan | undefined;
  #isWithheld = false;
  /** The 304 for a client that has the response already. It is sent once the handler, which does not know, has ended. */
  #notModified: Reply | undefined;
  #isGivenUp = false;
  #streamTimer: Timer | undefined;
  /** The fields to store, except an ETag that is computed from the complete body. */
  #stored: string[] = [];
  #isOwnValidator = false;
  /** The fields of an accepted response as they should leave. */
  #accepted: HeaderList = [];

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#body = new BodyCollector(options.maxBodyBytes);
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get released(): Promise<unknown> {
    return this.outcome;
  }

  head(response: ResponseHead, body?: Uint8Array): Verdict {
    const { isRevalidation, coversErrors, maxBodyBytes } = this.#options;
    this.#response = response;
    if (body !== undefined) this.#body.add(body);
    if (isRevalidation && response.status === 304) {
      this.#settle({ kind: "not-modified", response });
      return WITHHOLD;
    }
    if (coversErrors && response.status >= 500) {
      this.#isWithheld = true;
      return WITHHOLD_AND_COLLECT;
    }
    const length = parseSeconds(fieldOf(response.headers, "content-length"));
    const isTooLong = this.#body.isTooLarge || (length !== undefined && length > maxBodyBytes);
    const plan = this.#isGivenUp ? "timeout" : isTooLong ? "size" : this.#options.plan(response);
    if (typeof plan === "string") return this.#refuse(response, plan);
    this.#plan = plan;
    const verdict = this.#accept(response, plan, body);
    if (verdict.wantsBody)
      this.#streamTimer = this.#options.after(this.#options.streamAfterMs, () => this.giveUp("stream"));
    return verdict;
  }

  /** The fields that really leave decide: middleware further out may have made the response one client's own. */
  sent(headers: HeaderList): void {
    if (this.#plan === undefined) return;
    if (isPersonal(headers, this.#accepted)) this.giveUp("personal");
    // RFC 9112, 6.3: clients refuse a message that is framed in both ways.
    if (hasField(headers, "content-length") && hasField(headers, "transfer-encoding"))
      this.giveUp("truncated");
  }

  flushed(): void {
    this.giveUp("flushed");
  }

  chunk(bytes: Uint8Array): boolean {
    if (this.#isGivenUp) return false;
    this.#body.add(bytes);
    if (!this.#body.isTooLarge) return true;
    if (this.#isWithheld) this.#fail(undefined);
    else this.giveUp("size");
    return false;
  }

  /** The response goes on to its client. Others no longer wait for it, and it is not stored. */
  giveUp(reason: string): void {
    if (this.#isWithheld) return;
    this.#isGivenUp = true;
    this.#streamTimer?.cancel();
    this.#settle({ kind: "unstorable", reason });
    this.withheld();
  }

  withheld(): void {
    const reply = this.#notModified;
    this.#notModified = undefined;
    if (reply !== undefined) this.#options.exchange.reply(reply);
  }

  #fail(body: Uint8Array | undefined): void {
    this.#settle({ kind: "failed", response: this.#response!, body });
  }

  end(): void {
    this.#streamTimer?.cancel();
    const response = this.#response;
    if (response === undefined) {
      this.abort();
      return;
    }
    if (this.#plan === undefined) {
      this.#fail(this.#body.isTooLarge ? undefined : this.#body.whole());
      return;
    }
    const declared = fieldOf(response.headers, "content-length");
    // Too few or too many bytes: an incomplete message for the client as well (RFC 9112, 8).
    const isTruncated = declared !== undefined && Number(declared) !== this.#body.bytes;
    if (this.#body.isTooLarge || isTruncated)
      this.#settle({ kind: "unstorable", reason: isTruncated ? "truncated" : "size" });
    else this.#finish(response, this.#plan);
  }

  abort(): void {
    this.#streamTimer?.cancel();
    if (this.#isWithheld) this.#fail(undefined);
    else this.#settle({ kind: "aborted" });
    this.withheld();
  }

  #finish(response: ResponseHead, plan: StoragePlan): void {
    const body = this.#body.whole();
    const headers = this.#stored;
    if (!hasField(headers, "etag")) headers.push("ETag", makeEtag(body, this.#options.etag));
    const head: StoredHead = {
      status: response.status,
      message: response.message,
      headers,
      bornAt: plan.bornAt,
      lifetimeMs: plan.lifetimeMs,
      staleWhileRevalidateMs: plan.staleWhileRevalidateMs,
      staleIfErrorMs: plan.staleIfErrorMs,
      mustRevalidate: plan.mustRevalidate,
      isOwnValidator: this.#isOwnValidator,
      ownControl: ownControl(response.headers, plan.addedMaxAge),
    };
    this.#settle({ kind: "whole", head, body, plan, response });
  }

  #refuse(response: ResponseHead, detail: string): Verdict {
    const { statusField, reason } = this.#options;
    this.#settle({ kind: "unstorable", reason: detail });
    const headers = statusField.add(response.headers, statusField.forwarded({ reason, detail }));
    this.#options.onSent();
    if (!this.#isNotModifiedFor(response.status, response.headers))
      return { head: { ...response, headers }, wantsBody: false };
    this.#options.exchange.reply(notModified(filterFields(headers, (name) => !BODY_FIELDS.has(name))));
    return WITHHOLD;
  }

  #accept(response: ResponseHead, plan: StoragePlan, body: Uint8Array | undefined): Verdict {
    const { statusField, reason, exchange, etag, now, cacheControlExtra, addedVary } = this.#options;
    const { headers } = response;
    this.#isOwnValidator = hasField(headers, "etag") || hasField(headers, "last-modified");
    const added: [string, string][] = [];
    const vary = fieldOf(withVary(headers, addedVary(plan)), "vary");
    if (vary !== fieldOf(headers, "vary")) added.push(["Vary", vary!]);
    if (plan.addedMaxAge !== undefined) {
      added.push(["Cache-Control", addedControl(headers, plan.addedMaxAge, cacheControlExtra)]);
    }
    if (body !== undefined && !hasField(headers, "etag")) added.push(["ETag", makeEtag(body, etag)]);
    let sent: HeaderList = headers;
    let stored: string[] = storableHeaders(headers, exchange);
    for (const [name, value] of added) {
      sent = withField(sent, name, value);
      stored = withField(stored, name, value);
    }
    // RFC 9110, 6.6.1: a recipient adds Date to a response without one.
    if (!hasField(stored, "date")) stored.push("Date", formatHttpDate(now()));
    this.#stored = stored;
    this.#options.onSent();
    this.#accepted = sent;
    const wantsBody = body === undefined;
    const cacheStatus = statusField.forwarded({ reason, isStored: true });
    if (!this.#isNotModifiedFor(response.status, sent))
      return { head: { ...response, headers: statusField.add(sent, cacheStatus) }, wantsBody };
    this.#notModified = notModified(statusField.add(notModifiedHeaders(sent), cacheStatus));
    if (wantsBody) return WITHHOLD_AND_COLLECT;
    this.withheld();
    return WITHHOLD;
  }

  /** The handler did not see the client's conditions: they are evaluated here. */
  #isNotModifiedFor(status: number, headers: HeaderList): boolean {
    if (status !== 200) return false;
    const { request } = this.#options.exchange;
    const etag = fieldOf(headers, "etag");
    const lastModified = fieldOf(headers, "last-modified");
    return isNotModified(request, { etag, lastModified, date: undefined }, this.#options.now());
  }
}

function notModified(headers: HeaderList): Reply {
  return { status: 304, message: "", headers, body: undefined, isPlain: false };
}
