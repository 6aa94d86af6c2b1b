// One request's lookup: answer from the stored response, or call the handler once for all requests waiting for the key.

import { type Exchange, isFilling } from "../message/exchange.ts";
import type { Forwarded } from "../protocol/cache-status.ts";
import { variantKey } from "../protocol/vary.ts";
import { Fill } from "./fill.ts";
import { ABORTED, HandlerFailure, type LookupHost, type LookupState } from "./lookup-state.ts";
import type { ReadyResponse } from "./ready-response.ts";
import type { RequestDirectives } from "./request-directives.ts";
import { decodeIndex, isIndex, type StoredValue, textOf, type VaryIndex } from "./stored-response.ts";

type Answer = StoredValue | undefined;

const ATTEMPTS = 4;
/**
 * A response the store considers fresh may be stale by the time it took to store it. One that is staler than this was
 * returned by stale-if-error.
 */
const STORING_MS = 1_000;

export class Lookup<Request> implements LookupState<Request> {
  readonly host: LookupHost<Request>;
  readonly exchange: Exchange<Request>;
  readonly directives: RequestDirectives;
  readonly key: string;
  readonly tags: readonly string[];
  readonly cacheControlExtra: string | undefined;
  readonly now: number;
  isAnswered = false;
  isLeading = false;
  handlerCall: Promise<StoredValue | undefined> | undefined;
  forwarded: Promise<void> | undefined;
  mayServeStale: boolean;
  hasFailed = false;
  thrown: { readonly error: unknown } | undefined;

  constructor(
    host: LookupHost<Request>,
    exchange: Exchange<Request>,
    directives: RequestDirectives,
    key: string,
    tags: readonly string[],
    cacheControlExtra: string | undefined,
  ) {
    this.host = host;
    this.exchange = exchange;
    this.directives = directives;
    this.key = key;
    this.tags = tags;
    this.cacheControlExtra = cacheControlExtra;
    this.now = host.now();
    this.mayServeStale = exchange.canRunAgain;
  }

  run(): Promise<void> {
    const { request } = this.exchange;
    const isReadOnly =
      request.method === "HEAD" || this.directives.onlyIfCached || request.header("range") !== undefined;
    if (isReadOnly) return this.#answerIfStored();
    const { hitForMiss, options } = this.host;
    if (isFilling(request.message, options.cache, this.key))
      return this.host.pass(this.exchange, { reason: "bypass", detail: "nested" });
    if (hitForMiss.hasLoads && hitForMiss.shouldPass(this.key)) return this.#pass("unstorable");
    return this.#load(this.key, undefined, false).then(
      (value) => {
        const stored = value === undefined ? undefined : this.host.readyResponses.of(this.key, value);
        if (stored !== undefined && !this.isAnswered && this.#use(stored, value!, this.key)) return undefined;
        return this.#resolve(this.key, undefined, { value });
      },
      (error: unknown) => this.#resolve(this.key, undefined, { value: this.#onLoadError(error) }),
    );
  }

  answer(stored: ReadyResponse, value: StoredValue, cacheStatus?: string): void {
    this.isAnswered = true;
    this.exchange.reply(stored.reply(this.exchange.request, value, this.host.now(), cacheStatus));
  }

  /** `first`: the result of the first load, if it has run already. */
  async #resolve(key: string, index: VaryIndex | undefined, first?: { value: Answer }): Promise<void> {
    let isForced = false;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const isLoaded = attempt === 0 && first !== undefined;
      const value = isLoaded ? first.value : await this.#tryLoad(key, index, isForced);
      if (this.isAnswered) return this.forwarded;
      if (this.thrown !== undefined && value === undefined) throw this.thrown.error;
      if (value === undefined) break;
      if (value === ABORTED) continue;
      if (index === undefined) {
        const found = this.#indexIn(value);
        if (found !== undefined) return this.#resolve(this.#variant(found), found);
      }
      const stored = this.host.readyResponses.of(key, value);
      if (stored !== undefined && this.#use(stored, value, key)) return;
      // First wait for a load in flight; if the value is still of no use, force one.
      if (this.mayServeStale && stored !== undefined) this.mayServeStale = false;
      else isForced = true;
    }
    return this.#pass("unstorable");
  }

  /** Returns whether the stored response was sent. */
  #use(stored: ReadyResponse, value: StoredValue, key: string): boolean {
    const use = this.directives.use(stored, this.now);
    if (use === "fresh" || (use === "while-revalidating" && this.mayServeStale && !this.isLeading)) {
      this.host.emit("hit", key, this.exchange, use === "fresh" ? use : "stale-while-revalidate");
      this.answer(stored, value);
      return true;
    }
    const staleMs = -stored.freshMs(this.now);
    const isForError =
      this.hasFailed || this.thrown !== undefined || (!this.mayServeStale && staleMs > STORING_MS);
    if (!isForError || staleMs > stored.head.staleIfErrorMs) return false;
    this.host.emit("hit", key, this.exchange, "stale-if-error");
    this.answer(stored, value);
    return true;
  }

  #load(key: string, index: VaryIndex | undefined, isForced: boolean): Promise<Answer> {
    const { options, loadOptions } = this.host;
    return options.cache.getOrSet<Answer>(
      key,
      (context) => new Fill(this, key, index, isForced).run(context),
      loadOptions(this.tags, this.mayServeStale, isForced),
    );
  }

  async #tryLoad(key: string, index: VaryIndex | undefined, isForced: boolean): Promise<Answer> {
    try {
      return await this.#load(key, index, isForced);
    } catch (error) {
      return this.#onLoadError(error);
    }
  }

  #onLoadError(error: unknown): undefined {
    if (error instanceof HandlerFailure) this.#onHandlerFailure(error);
    else this.host.reportError(error);
  }

  /** The handler failed and no stored response can replace it any more: its own client gets the error response. */
  #onHandlerFailure({ lookup, reply }: HandlerFailure): void {
    if (lookup !== this || reply === undefined) return;
    this.isAnswered = true;
    const { statusField } = this.host;
    const cacheStatus = statusField.forwarded({ reason: "stale" });
    this.exchange.reply({ ...reply, headers: statusField.add(reply.headers, cacheStatus) });
  }

  /** HEAD, range and only-if-cached requests use stored responses but never fill the cache. */
  async #answerIfStored(): Promise<void> {
    const { cache } = this.host.options;
    try {
      let key = this.key;
      let value = await cache.get<StoredValue>(key);
      const index = value === undefined ? undefined : this.#indexIn(value);
      if (index !== undefined) {
        key = this.#variant(index);
        value = await cache.get<StoredValue>(key);
      }
      const stored = value === undefined ? undefined : this.host.readyResponses.of(key, value);
      if (
        stored !== undefined &&
        this.directives.use(stored, this.now) === "fresh" &&
        stored.canServe(this.exchange.request)
      ) {
        this.host.emit("hit", key, this.exchange, "fresh");
        return this.answer(stored, value!);
      }
    } catch (error) {
      this.host.reportError(error);
    }
    this.host.emit("miss", this.key, this.exchange, "uri-miss");
    if (this.directives.onlyIfCached) return this.#notCached();
    return this.#pass();
  }

  /** RFC 9111, 5.2.1.7. */
  #notCached(): void {
    const { statusField } = this.host;
    const cacheStatus = statusField.forwarded({ reason: "uri-miss", detail: "only-if-cached" });
    const headers = statusField.add(["Content-Length", "0"], cacheStatus);
    this.exchange.reply({ status: 504, message: "", headers, body: undefined, isPlain: false });
  }

  async #pass(detail?: string): Promise<void> {
    if (this.exchange.isAbandoned) return;
    if (detail !== undefined) {
      if (!this.isLeading) this.host.emit("miss", this.key, this.exchange, "uri-miss");
      this.host.notStored(detail, this.key, this.exchange);
    }
    const forwarded: Forwarded = { reason: "uri-miss" };
    return this.host.pass(this.exchange, detail === undefined ? forwarded : { ...forwarded, detail });
  }

  #indexIn(value: StoredValue): VaryIndex | undefined {
    const text = textOf(value);
    return text !== undefined && isIndex(text) ? decodeIndex(text) : undefined;
  }

  #variant({ family, names }: VaryIndex): string {
    return variantKey(this.key, family, names, this.exchange.request);
  }
}
