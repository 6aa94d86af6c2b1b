// Fills one key: calls the handler once on behalf of every waiting request, as the load of a getOrSet.
import { type Duration, HOUR_MS } from "../../core/duration.ts";
import type { LoadContext } from "../../core/options.ts";
import type { Exchange, Reply, RequestChange, ResponseHead } from "../message/exchange.ts";
import { filterFields, hasField, withField } from "../message/header-list.ts";
import { unkeyedHeaders } from "../message/keyed-header.ts";
import type { ForwardReason } from "../protocol/cache-status.ts";
import { formatHttpDate } from "../protocol/http-date.ts";
import { freshenedHeaders, handlersHeaders } from "../protocol/stored-headers.ts";
import { variantKey } from "../protocol/vary.ts";
import { ABORTED, HandlerFailure, type LookupState } from "./lookup-state.ts";
import { ReadyResponse } from "./ready-response.ts";
import { type RecordedOutcome, ResponseRecorder } from "./response-recorder.ts";
import { addedVary, planFor, storageOptions, tagsFor } from "./storage-plan.ts";
import {
  encodeAgain,
  encodeIndex,
  encodeResponse,
  type StoredHead,
  type StoredValue,
  textOf,
  type VaryIndex,
} from "./stored-response.ts";

/** Seconds: the shortest ttl a store accepts, for responses that must be revalidated before every use. */
const MIN_TTL = 0.001;
/** A long ttl as a text, which is not suspected of being milliseconds: handlers do state lifetimes of years. */
const asDuration = (seconds: number): Duration =>
  seconds < HOUR_MS ? seconds : `${Math.floor(seconds * 1000)}ms`;
/** Minimum ttl of a variant index, in seconds. */
const INDEX_TTL = 3_600;
/** A background refresh is abandoned after this: it has no client that could disconnect, and later requests wait for it. */
const MAX_REFRESH_MS = 60_000;
/** Seconds an expired response is kept at most, even if its handler asks for more. */
const MAX_STALE_RETENTION = 86_400;

/** The status is what counts; the fields describe a body that is missing. */
const BROKEN: Pick<Reply, "headers" | "body"> = { headers: ["Content-Length", "0"], body: undefined };

interface Stale {
  readonly stored: ReadyResponse;
  readonly value: StoredValue;
}

export class Fill<Request> {
  readonly #lookup: LookupState<Request>;
  readonly #key: string;
  readonly #index: VaryIndex | undefined;
  readonly #isForced: boolean;
  #exchange: Exchange<Request>;
  #requestedAt = 0;

  constructor(lookup: LookupState<Request>, key: string, index: VaryIndex | undefined, isForced: boolean) {
    this.#lookup = lookup;
    this.#key = key;
    this.#index = index;
    this.#isForced = isForced;
    this.#exchange = lookup.exchange;
  }

  async run(context: LoadContext<StoredValue | undefined>): Promise<StoredValue | undefined> {
    const lookup = this.#lookup;
    if (lookup.handlerCall !== undefined) {
      // An invalidation during the handler's run started a second load: the result still goes to this client but is not stored.
      context.skip();
      await lookup.handlerCall;
      return undefined;
    }
    lookup.handlerCall = this.#begin(context);
    return lookup.handlerCall;
  }

  async #begin(context: LoadContext<StoredValue | undefined>): Promise<StoredValue | undefined> {
    const lookup = this.#lookup;
    const { host, directives, now } = lookup;
    const stale = this.#staleOf(context.stale);
    const use = stale === undefined ? "not" : directives.use(stale.stored, now);
    if (stale !== undefined && use === "fresh") {
      // Fresh enough for this client, as with max-stale; other requests must not wait for it.
      if (lookup.isAnswered) return undefined;
      host.emit("hit", this.#key, lookup.exchange, "fresh");
      lookup.answer(stale.stored, stale.value);
      return undefined;
    }
    const isBackground = lookup.isAnswered || (use === "while-revalidating" && lookup.mayServeStale);
    if (isBackground) {
      if (!lookup.exchange.canRunAgain) return undefined;
      this.#exchange = lookup.exchange.background();
    } else if (lookup.exchange.isAbandoned) {
      lookup.isAnswered = true;
      context.skip();
      return ABORTED;
    } else {
      lookup.isLeading = true;
      host.emit("miss", this.#key, lookup.exchange, this.#reason(stale));
    }
    host.hitForMiss.beginLoad(this.#key);
    try {
      return await this.#callHandler(context, stale, isBackground);
    } finally {
      host.hitForMiss.endLoad(this.#key);
    }
  }

  async #callHandler(
    context: LoadContext<StoredValue | undefined>,
    stale: Stale | undefined,
    isBackground: boolean,
  ): Promise<StoredValue | undefined> {
    const lookup = this.#lookup;
    this.#requestedAt = lookup.host.now();
    const coversErrors =
      stale !== undefined &&
      !isBackground &&
      -stale.stored.freshMs(lookup.now) < stale.stored.head.staleIfErrorMs;
    const recorder = this.#createRecorder(stale, coversErrors, isBackground);
    const { fillTimeout } = lookup.host.options;
    const limit = isBackground
      ? lookup.host.after(Math.min(MAX_REFRESH_MS, fillTimeout * 1_000), () => recorder.abort())
      : lookup.host.after(fillTimeout * 1_000, () => recorder.giveUp("timeout"));
    try {
      const forwarded = this.#forward(stale, recorder);
      if (!isBackground) lookup.forwarded = forwarded;
      await Promise.race([forwarded, recorder.outcome]);
    } catch (error) {
      limit.cancel();
      this.#notStored("thrown");
      if (isBackground) {
        lookup.host.reportError(error);
        // As a failed load: the next refresh waits for the back-off.
        throw new HandlerFailure(lookup, undefined, error);
      }
      lookup.thrown = { error };
      if (coversErrors) throw new HandlerFailure(lookup, undefined, error);
      return undefined;
    }
    const outcome = await recorder.outcome;
    limit.cancel();
    switch (outcome.kind) {
      case "whole":
        lookup.host.hitForMiss.unmark(this.#key);
        return this.#storeResponse(context, outcome);
      case "unstorable":
        this.#notStored(outcome.reason);
        lookup.host.hitForMiss.mark(this.#key);
        if (isBackground) throw new HandlerFailure(lookup, undefined);
        // Its client gets the response from the handler, which may not have begun it yet.
        lookup.isAnswered = true;
        return undefined;
      case "aborted":
        this.#notStored("aborted");
        if (isBackground) throw new HandlerFailure(lookup, undefined);
        lookup.isAnswered = true;
        context.skip();
        return ABORTED;
      case "not-modified":
        return this.#freshen(context, stale!, outcome.response, isBackground);
      case "failed": {
        this.#notStored("status");
        lookup.hasFailed = true;
        const { response, body } = outcome;
        // An error page that is broken or too large has nothing to offer to its client either.
        throw new HandlerFailure(lookup, {
          ...response,
          ...(body === undefined ? BROKEN : { body }),
          isPlain: false,
        });
      }
    }
  }

  #notStored(reason: string): void {
    this.#lookup.host.notStored(reason, this.#key, this.#lookup.exchange);
  }

  async #forward(stale: Stale | undefined, recorder: ResponseRecorder): Promise<void> {
    await this.#exchange.forward(this.#requestChange(stale), recorder);
  }

  #createRecorder(stale: Stale | undefined, coversErrors: boolean, isBackground: boolean): ResponseRecorder {
    const { host } = this.#lookup;
    const { options } = host;
    return new ResponseRecorder({
      exchange: this.#exchange,
      statusField: host.statusField,
      reason: this.#reason(stale),
      now: () => host.now(),
      after: (delayMs, run) => host.after(delayMs, run),
      streamAfterMs: options.streamAfter * 1_000,
      maxBodyBytes: options.maxBodyBytes,
      etag: options.etag,
      cacheControlExtra: this.#lookup.cacheControlExtra,
      addedVary: (plan) => addedVary(options, plan),
      isRevalidation: stale?.stored.head.isOwnValidator === true,
      coversErrors,
      plan: (response) => planFor(this.#lookup, response, this.#requestedAt),
      onSent: () => {
        if (!isBackground) this.#lookup.isAnswered = true;
      },
    });
  }

  #reason(stale: Stale | undefined): ForwardReason {
    if (stale !== undefined) return stale.stored.freshMs(this.#lookup.now) > 0 ? "request" : "stale";
    return this.#index === undefined ? "uri-miss" : "vary-miss";
  }

  /** Hides unkeyed fields, drops the client's conditions and adds those that revalidate the stored response. */
  #requestChange(stale: Stale | undefined): RequestChange {
    const { host, exchange } = this.#lookup;
    const named = [...(this.#index?.names ?? []), ...(exchange.varyBy ?? [])];
    const keyedFields = named.length === 0 ? host.keyedFields : new Set([...host.keyedFields, ...named]);
    const remove = unkeyedHeaders(exchange.request, keyedFields, host.options.strict);
    const set: string[] = [];
    if (stale?.stored.head.isOwnValidator) {
      const { etag, lastModified } = stale.stored;
      if (etag !== undefined) set.push("if-none-match", etag);
      if (lastModified !== undefined) set.push("if-modified-since", lastModified);
    }
    return { fill: { cache: host.options.cache, key: this.#lookup.key }, remove, set };
  }

  #staleOf(value: StoredValue | undefined): Stale | undefined {
    if (value === undefined) return undefined;
    const stored = this.#lookup.host.readyResponses.of(this.#key, value);
    return stored === undefined ? undefined : { stored, value };
  }

  async #storeResponse(
    context: LoadContext<StoredValue | undefined>,
    { head, body, plan, response }: Extract<RecordedOutcome, { kind: "whole" }>,
  ): Promise<StoredValue | undefined> {
    const { host } = this.#lookup;
    const tags = tagsFor(this.#lookup, response);
    if (tags === undefined) {
      this.#notStored("callback");
      return undefined;
    }
    return this.#storeValue(context, encodeResponse(host.token(), head, body), head, plan.vary, tags);
  }

  /** Stores the value under the key that its Vary selects. */
  async #storeValue(
    context: LoadContext<StoredValue | undefined>,
    value: StoredValue,
    head: StoredHead,
    vary: readonly string[],
    tags: readonly string[],
  ): Promise<StoredValue | undefined> {
    const { host, key, exchange } = this.#lookup;
    const { cache } = host.options;
    const window = Math.max(head.staleIfErrorMs, head.staleWhileRevalidateMs) / 1000;
    host.staleRetention.seconds = Math.min(
      MAX_STALE_RETENTION,
      Math.max(host.staleRetention.seconds, window),
    );
    const ttl = Math.max(MIN_TTL, (head.bornAt + head.lifetimeMs - host.now()) / 1000);
    context.setTags(tags);
    const names = this.#index?.names ?? [];
    if (vary.every((name) => names.includes(name))) {
      context.setTtl(asDuration(ttl));
      host.emit("store", this.#key, exchange, `ttl=${Math.floor(ttl)}`);
      return value;
    }
    const index: VaryIndex = { family: host.token(), names: [...new Set([...names, ...vary])].sort() };
    const indexTtl = asDuration(Math.max(ttl, INDEX_TTL));
    if (this.#index !== undefined) {
      // Vary names more fields than the index: the key of this response lacks them. Only the new index is stored.
      this.#notStored("vary-changed");
      await cache.set(key, encodeIndex(host.token(), index), {
        ttl: indexTtl,
        tags: this.#lookup.tags,
      });
      return undefined;
    }
    // The variant is reachable only through the index, whose store is refused after an invalidation in the meantime.
    await cache.getOrSet(variantKey(key, index.family, index.names, exchange.request), () => value, {
      ttl: asDuration(ttl),
      tags: [...this.#lookup.tags, ...tags],
      staleIfError: host.staleRetention.seconds,
    });
    context.setTtl(indexTtl);
    host.emit("store", this.#key, exchange, `ttl=${Math.floor(ttl)}`);
    return encodeIndex(host.token(), index);
  }

  /** Updates the stored response from the handler's 304 (RFC 9111, 4.3.4). */
  async #freshen(
    context: LoadContext<StoredValue | undefined>,
    { stored, value }: Stale,
    response: ResponseHead,
    isBackground: boolean,
  ): Promise<StoredValue | undefined> {
    const lookup = this.#lookup;
    const { host } = lookup;
    const before = handlersHeaders(stored.head.headers, stored.head.ownControl);
    const exchange = this.#exchange;
    const merged = freshenedHeaders(before, response.headers, exchange);
    const headers = hasField(response.headers, "date")
      ? merged
      : withField(merged, "Date", formatHttpDate(host.now()));
    const { status, message } = stored.head;
    // Age describes the 304 and is not stored (RFC 9111, 4.2.3).
    const age = filterFields(response.headers, (name) => name === "age");
    const plan = planFor(lookup, { status, message, headers: [...headers, ...age] }, this.#requestedAt);
    const head: StoredHead =
      typeof plan === "string"
        ? { ...stored.head, headers }
        : {
            ...stored.head,
            ...storageOptions(headers, plan, lookup.cacheControlExtra, addedVary(host.options, plan)),
          };
    const freshened = encodeAgain(host.token(), head, value);
    const isStored = typeof plan !== "string";
    if (!isBackground) {
      const cacheStatus = host.statusField.forwarded({
        reason: this.#isForced ? "request" : "stale",
        status: 304,
        isStored,
      });
      lookup.answer(
        new ReadyResponse(textOf(freshened)!, freshened, host.statusField),
        freshened,
        cacheStatus,
      );
    }
    const tags = isStored ? tagsFor(this.#lookup, { status, message, headers }) : undefined;
    if (typeof plan === "string" || tags === undefined) {
      this.#notStored(typeof plan === "string" ? plan : "callback");
      return undefined;
    }
    return this.#storeValue(context, freshened, head, plan.vary, tags);
  }
}
