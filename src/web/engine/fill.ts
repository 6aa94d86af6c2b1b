// One call of the handler on behalf of all who wait for its key: the load of a getOrSet.
import type { LoadContext } from "../../core/options.ts";
import type { Exchange, RequestChange, ResponseHead } from "../message/exchange.ts";
import { filterFields, hasField, withField } from "../message/header-list.ts";
import type { ForwardReason } from "../protocol/cache-status.ts";
import { formatHttpDate } from "../protocol/http-date.ts";
import { freshenedHeaders, handlersHeaders } from "../protocol/stored-headers.ts";
import { unkeyedHeaders } from "../protocol/unkeyed-header.ts";
import { variantKey } from "../protocol/vary.ts";
import { ABORTED, HandlerFailure, type LookupState } from "./lookup-state.ts";
import { ReadyResponse } from "./ready-response.ts";
import { type RecordedOutcome, ResponseRecorder } from "./response-recorder.ts";
import { planFor, storageOptions, tagsFor } from "./storage-plan.ts";
import {
  encodeAgain,
  encodeIndex,
  encodeResponse,
  type StoredHead,
  type StoredValue,
  textOf,
  type VaryIndex,
} from "./stored-response.ts";

/** The shortest lifetime a store takes, for what must be revalidated before every use. */
const LEAST_TTL = 0.001;
/** Seconds an index of variants lives at least. */
const INDEX_TTL = 3_600;
/** A call without a client that takes longer is given up: no client can leave it, and those who come later wait for it. */
const LONGEST_REFRESH_MS = 60_000;
/** Seconds an expired response is kept at most, whatever its handler says. */
const MOST_KEPT = 86_400;

interface Stale {
  readonly stored: ReadyResponse;
  readonly value: StoredValue;
}

export class Fill<Request> {
  readonly #visit: LookupState<Request>;
  readonly #key: string;
  readonly #index: VaryIndex | undefined;
  readonly #isForced: boolean;
  #exchange: Exchange<Request>;
  #requestedAt = 0;

  constructor(visit: LookupState<Request>, key: string, index: VaryIndex | undefined, isForced: boolean) {
    this.#visit = visit;
    this.#key = key;
    this.#index = index;
    this.#isForced = isForced;
    this.#exchange = visit.exchange;
  }

  async run(context: LoadContext<StoredValue | undefined>): Promise<StoredValue | undefined> {
    const visit = this.#visit;
    if (visit.call !== undefined) {
      // Something was invalidated while its handler runs: what comes of that is for this client, and not to be stored.
      context.skip();
      await visit.call;
      return undefined;
    }
    visit.call = this.#begin(context);
    return visit.call;
  }

  async #begin(context: LoadContext<StoredValue | undefined>): Promise<StoredValue | undefined> {
    const visit = this.#visit;
    const { host, directives, now } = visit;
    const stale = this.#staleOf(context.stale);
    const use = stale === undefined ? "not" : directives.use(stale.stored, now);
    if (stale !== undefined && use === "fresh") {
      // The client takes it as it is; nobody else is to wait for that.
      if (visit.isAnswered) return undefined;
      host.told("hit", this.#key, visit.exchange.native);
      visit.answer(stale.stored, stale.value);
      return undefined;
    }
    const isLater = visit.isAnswered || (use === "while-revalidating" && visit.mayServeStale);
    if (isLater) {
      if (!visit.exchange.canRunAgain) return undefined;
      this.#exchange = visit.exchange.background();
    } else {
      visit.isLeading = true;
      host.told("miss", this.#key, visit.exchange.native);
    }
    host.unstorable.begun(this.#key);
    try {
      return await this.#call(context, stale, isLater);
    } finally {
      host.unstorable.ended(this.#key);
    }
  }

  async #call(
    context: LoadContext<StoredValue | undefined>,
    stale: Stale | undefined,
    isLater: boolean,
  ): Promise<StoredValue | undefined> {
    const visit = this.#visit;
    this.#requestedAt = visit.host.now();
    const coversErrors =
      stale !== undefined && !isLater && -stale.stored.freshMs(visit.now) < stale.stored.head.staleIfErrorMs;
    const filling = this.#filling(stale, coversErrors, isLater);
    const limit = isLater ? visit.host.after(LONGEST_REFRESH_MS, () => filling.abort()) : undefined;
    try {
      const forwarded = this.#exchange.forward(this.#change(stale), filling);
      await (isLater ? Promise.race([forwarded, filling.outcome]) : forwarded);
    } catch (error) {
      limit?.cancel();
      if (isLater) {
        visit.host.failed(error);
        return undefined;
      }
      visit.thrown = { error };
      if (coversErrors) throw new HandlerFailure(visit, undefined, error);
      return undefined;
    }
    const outcome = await filling.outcome;
    limit?.cancel();
    switch (outcome.kind) {
      case "whole":
        visit.host.unstorable.forget(this.#key);
        return this.#store(context, outcome);
      case "unstorable":
        visit.host.unstorable.remember(this.#key);
        return undefined;
      case "aborted":
        if (!isLater) visit.isAnswered = true;
        context.skip();
        return ABORTED;
      case "not-modified":
        return this.#freshen(context, stale!, outcome.response, isLater);
      case "failed": {
        const { response, body } = outcome;
        throw new HandlerFailure(visit, { ...response, body, isPlain: false });
      }
    }
  }

  #filling(stale: Stale | undefined, coversErrors: boolean, isLater: boolean): ResponseRecorder {
    const { host } = this.#visit;
    const { options } = host;
    return new ResponseRecorder({
      exchange: this.#exchange,
      statusField: host.statusField,
      reason: this.#reason(stale),
      now: () => host.now(),
      maxBodyBytes: options.maxBodyBytes,
      etag: options.etag,
      varyBy: options.varyBy,
      cacheControlExtra: options.cacheControlExtra,
      isRevalidation: stale?.stored.head.isOwnValidator === true,
      coversErrors,
      plan: (response) => planFor(this.#visit, response, this.#requestedAt),
      onSent: () => {
        if (!isLater) this.#visit.isAnswered = true;
      },
    });
  }

  #reason(stale: Stale | undefined): ForwardReason {
    if (stale !== undefined) return stale.stored.freshMs(this.#visit.now) > 0 ? "request" : "stale";
    return this.#index === undefined ? "uri-miss" : "vary-miss";
  }

  /** Hides what is not in the key, drops the client's conditions and asks whether the stored response is still good. */
  #change(stale: Stale | undefined): RequestChange {
    const { host, exchange } = this.#visit;
    const keyed = this.#index === undefined ? host.keyed : new Set([...host.keyed, ...this.#index.names]);
    const remove = unkeyedHeaders(exchange.request, keyed, host.options.strict);
    const set: string[] = [];
    if (stale?.stored.head.isOwnValidator) {
      const { etag, lastModified } = stale.stored;
      if (etag !== undefined) set.push("if-none-match", etag);
      if (lastModified !== undefined) set.push("if-modified-since", lastModified);
    }
    return { fill: { cache: host.options.cache, key: this.#visit.key }, remove, set };
  }

  #staleOf(value: StoredValue | undefined): Stale | undefined {
    if (value === undefined) return undefined;
    const stored = this.#visit.host.prepared.of(this.#key, value);
    return stored === undefined ? undefined : { stored, value };
  }

  async #store(
    context: LoadContext<StoredValue | undefined>,
    { head, body, plan, response }: Extract<RecordedOutcome, { kind: "whole" }>,
  ): Promise<StoredValue | undefined> {
    const { host } = this.#visit;
    const tags = tagsFor(this.#visit, response);
    if (tags === undefined) return undefined;
    return this.#settle(context, encodeResponse(host.token(), head, body), head, plan.vary, tags);
  }

  /** Puts it where a request that selects it will look. */
  async #settle(
    context: LoadContext<StoredValue | undefined>,
    value: StoredValue,
    head: StoredHead,
    vary: readonly string[],
    tags: readonly string[],
  ): Promise<StoredValue | undefined> {
    const { host, key, exchange } = this.#visit;
    const { cache } = host.options;
    const window = Math.max(head.staleIfErrorMs, head.staleWhileRevalidateMs) / 1000;
    host.keep.seconds = Math.min(MOST_KEPT, Math.max(host.keep.seconds, window));
    const ttl = Math.max(LEAST_TTL, (head.bornAt + head.lifetimeMs - host.now()) / 1000);
    context.setTags(tags);
    const names = this.#index?.names ?? [];
    if (vary.every((name) => names.includes(name))) {
      context.setTtl(ttl);
      host.told("store", this.#key, exchange.native);
      return value;
    }
    const index: VaryIndex = { family: host.token(), names: [...new Set([...names, ...vary])].sort() };
    const indexTtl = Math.max(ttl, INDEX_TTL);
    if (this.#index !== undefined) {
      // More fields select than was known. This response was loaded under a key that lacks them; the next one will not be.
      await cache.set(key, encodeIndex(host.token(), index), { ttl: indexTtl, tags: this.#visit.tags });
      return undefined;
    }
    // Nobody finds the variant unless the index is stored, and that is refused if anything was invalidated meanwhile.
    await cache.getOrSet(variantKey(key, index.family, index.names, exchange.request), () => value, {
      ttl,
      tags: [...this.#visit.tags, ...tags],
      staleIfError: host.keep.seconds,
    });
    context.setTtl(indexTtl);
    host.told("store", this.#key, exchange.native);
    return encodeIndex(host.token(), index);
  }

  /** The handler says that the stored response is still good (RFC 9111, 4.3.4). */
  async #freshen(
    context: LoadContext<StoredValue | undefined>,
    { stored, value }: Stale,
    response: ResponseHead,
    isLater: boolean,
  ): Promise<StoredValue | undefined> {
    const visit = this.#visit;
    const { host } = visit;
    const before = handlersHeaders(stored.head.headers, stored.head.ownControl);
    const merged = freshenedHeaders(before, response.headers);
    const headers = hasField(response.headers, "date")
      ? merged
      : withField(merged, "Date", formatHttpDate(host.now()));
    const { status, message } = stored.head;
    // The age is that of the 304, and not stored (RFC 9111, 4.2.3).
    const age = filterFields(response.headers, (name) => name === "age");
    const plan = planFor(visit, { status, message, headers: [...headers, ...age] }, this.#requestedAt);
    const head: StoredHead =
      typeof plan === "string"
        ? { ...stored.head, headers }
        : { ...stored.head, ...storageOptions(headers, plan, host.options.cacheControlExtra) };
    const freshened = encodeAgain(host.token(), head, value);
    const isStored = typeof plan !== "string";
    if (!isLater) {
      const said = host.statusField.forwarded({
        reason: this.#isForced ? "request" : "stale",
        status: 304,
        isStored,
      });
      visit.answer(new ReadyResponse(textOf(freshened)!, freshened, host.statusField), freshened, said);
    }
    const tags = isStored ? tagsFor(this.#visit, { status, message, headers }) : undefined;
    if (typeof plan === "string" || tags === undefined) return undefined;
    return this.#settle(context, freshened, head, plan.vary, tags);
  }
}
