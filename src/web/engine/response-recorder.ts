// Watches a response on its way to the client and makes of it what is stored.

import type { Exchange, ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import { fieldOf, filterFields, type HeaderList, hasField, withField } from "../message/header-list.ts";
import { parseSeconds } from "../protocol/cache-control.ts";
import type { ForwardReason, StatusField } from "../protocol/cache-status.ts";
import { isNotModified, notModifiedHeaders } from "../protocol/conditional.ts";
import { makeEtag } from "../protocol/etag.ts";
import { formatHttpDate } from "../protocol/http-date.ts";
import type { StoragePlan } from "../protocol/policy.ts";
import { addedControl, ownControl, storableHeaders } from "../protocol/stored-headers.ts";
import { BodyCollector } from "./body-collector.ts";
import type { StoredHead } from "./stored-response.ts";

/** What became of a response. */
export type RecordedOutcome =
  | {
      readonly kind: "whole";
      readonly head: StoredHead;
      readonly body: Uint8Array;
      readonly plan: StoragePlan;
      /** As the handler sent them. */
      readonly response: ResponseHead;
    }
  | { readonly kind: "unstorable" }
  /** It ended early: nobody knows whether it could have been stored. */
  | { readonly kind: "aborted" }
  /** Withheld: the stored response is still good. */
  | { readonly kind: "not-modified"; readonly response: ResponseHead }
  /** Withheld: the stored response may answer in its place. */
  | { readonly kind: "failed"; readonly response: ResponseHead; readonly body: Uint8Array };

export interface RecorderOptions {
  readonly exchange: Exchange;
  readonly statusField: StatusField;
  readonly reason: ForwardReason;
  readonly now: () => number;
  readonly maxBodyBytes: number;
  readonly etag: "weak" | "strong";
  readonly varyBy: readonly string[];
  readonly cacheControlExtra: string | undefined;
  /** The handler was asked whether the stored response is still good. */
  readonly isRevalidation: boolean;
  /** A stored response may answer in place of an error. */
  readonly coversErrors: boolean;
  /** On which terms it may be stored, or why not. */
  readonly plan: (response: ResponseHead) => StoragePlan | string;
  /** Told when the response goes to the client. */
  readonly onSent: () => void;
}

/** Fields of a body that is not sent. */
const OF_A_BODY = new Set([
  "content-type",
  "content-length",
  "content-encoding",
  "content-range",
  "transfer-encoding",
]);

const NOTHING: Verdict = { head: undefined, wantsBody: false };
const COLLECT: Verdict = { head: undefined, wantsBody: true };

export class ResponseRecorder implements Tap {
  readonly wantsWhole = true;
  readonly outcome: Promise<RecordedOutcome>;
  readonly #terms: RecorderOptions;
  readonly #body: BodyCollector;
  #settle: (outcome: RecordedOutcome) => void = () => {};
  #response: ResponseHead | undefined;
  #plan: StoragePlan | undefined;
  /** What is stored, but for an ETag that has to wait for the body. */
  #stored: string[] = [];
  #isOwnValidator = false;

  constructor(terms: RecorderOptions) {
    this.#terms = terms;
    this.#body = new BodyCollector(terms.maxBodyBytes);
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  head(response: ResponseHead, body?: Uint8Array): Verdict {
    const { isRevalidation, coversErrors, maxBodyBytes } = this.#terms;
    this.#response = response;
    if (body !== undefined) this.#body.add(body);
    if (isRevalidation && response.status === 304) {
      this.#settle({ kind: "not-modified", response });
      return NOTHING;
    }
    if (coversErrors && response.status >= 500) return COLLECT;
    const length = parseSeconds(fieldOf(response.headers, "content-length"));
    const isTooLong = this.#body.isOver || (length !== undefined && length > maxBodyBytes);
    const plan = isTooLong ? "size" : this.#terms.plan(response);
    if (typeof plan === "string") return this.#refuse(response, plan, body !== undefined);
    this.#plan = plan;
    return this.#accept(response, plan, body);
  }

  chunk(bytes: Uint8Array): boolean {
    this.#body.add(bytes);
    if (this.#body.isOver) this.#settle({ kind: "unstorable" });
    return !this.#body.isOver;
  }

  end(): void {
    const response = this.#response;
    if (response === undefined) {
      this.abort();
      return;
    }
    if (this.#plan === undefined) {
      this.#settle({
        kind: "failed",
        response,
        body: this.#body.isOver ? new Uint8Array() : this.#body.whole(),
      });
      return;
    }
    const declared = fieldOf(response.headers, "content-length");
    // Too few or too many bytes: the client will not take it for whole either (RFC 9112, 8).
    const isTruncated = declared !== undefined && Number(declared) !== this.#body.bytes;
    if (this.#body.isOver || isTruncated) this.#settle({ kind: "unstorable" });
    else this.#finish(response, this.#plan);
  }

  abort(): void {
    this.#settle({ kind: "aborted" });
  }

  #finish(response: ResponseHead, plan: StoragePlan): void {
    const body = this.#body.whole();
    const headers = this.#stored;
    if (!hasField(headers, "etag")) headers.push("ETag", makeEtag(body, this.#terms.etag));
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

  #refuse(response: ResponseHead, detail: string, isWhole: boolean): Verdict {
    const { statusField, reason } = this.#terms;
    this.#settle({ kind: "unstorable" });
    const headers = statusField.add(response.headers, statusField.forwarded({ reason, detail }));
    if (isWhole && this.#isHeldByClient(response.status, response.headers)) {
      return this.#notModified(filterFields(headers, (name) => !OF_A_BODY.has(name)));
    }
    this.#terms.onSent();
    return { head: { ...response, headers }, wantsBody: false };
  }

  #accept(response: ResponseHead, plan: StoragePlan, body: Uint8Array | undefined): Verdict {
    const { statusField, reason, exchange, etag, now, varyBy, cacheControlExtra } = this.#terms;
    const { headers } = response;
    this.#isOwnValidator = hasField(headers, "etag") || hasField(headers, "last-modified");
    const added: [string, string][] = [];
    if (varyBy.length > 0) added.push(["Vary", plan.vary.join(", ")]);
    if (plan.addedMaxAge !== undefined) {
      added.push(["Cache-Control", addedControl(headers, plan.addedMaxAge, cacheControlExtra)]);
    }
    if (body !== undefined && !hasField(headers, "etag")) added.push(["ETag", makeEtag(body, etag)]);
    let sent: HeaderList = headers;
    let stored: string[] = storableHeaders(
      headers,
      (name, value) => exchange.isOuter?.(name, value) ?? false,
    );
    for (const [name, value] of added) {
      sent = withField(sent, name, value);
      stored = withField(stored, name, value);
    }
    // RFC 9110, 6.6.1: a response that came without one is given the time of its arrival.
    if (!hasField(stored, "date")) stored.push("Date", formatHttpDate(now()));
    this.#stored = stored;
    const said = statusField.forwarded({ reason, isStored: true });
    if (body !== undefined && this.#isHeldByClient(response.status, sent)) {
      const kept = notModifiedHeaders(sent, fieldOf(sent, "etag"));
      return this.#notModified(statusField.add(kept, said));
    }
    this.#terms.onSent();
    return { head: { ...response, headers: statusField.add(sent, said) }, wantsBody: body === undefined };
  }

  /** The handler was not shown the client's condition. It is answered here, unless a body is still to come. */
  #isHeldByClient(status: number, headers: HeaderList): boolean {
    if (status !== 200) return false;
    const { request } = this.#terms.exchange;
    const etag = fieldOf(headers, "etag");
    const lastModified = fieldOf(headers, "last-modified");
    return isNotModified(request, { etag, lastModified, date: undefined }, this.#terms.now());
  }

  #notModified(headers: HeaderList): Verdict {
    this.#terms.onSent();
    this.#terms.exchange.reply({ status: 304, message: "", headers, body: undefined, isPlain: false });
    return NOTHING;
  }
}
