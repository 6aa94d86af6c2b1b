// The way of one request through the cache: find the stored response, use it, or have the handler called once for all who wait.

import type { Exchange } from "../message/exchange.ts";
import { isFilling } from "../message/nested-caches.ts";
import type { Forwarded } from "../protocol/cache-status.ts";
import { variantKey } from "../protocol/vary.ts";
import { Fill } from "./fill.ts";
import { ABORTED, HandlerFailure, type LookupHost, type LookupState } from "./lookup-state.ts";
import type { ReadyResponse } from "./ready-response.ts";
import type { RequestDirectives } from "./request-directives.ts";
import { decodeIndex, isIndex, type StoredValue, textOf, type VaryIndex } from "./stored-response.ts";

type Answer = StoredValue | undefined;

const ATTEMPTS = 4;
/** What the store holds for fresh may be stale here by the time it took to store it; by more only in place of an error. */
const STORING_MS = 1_000;

export class Lookup<Request> implements LookupState<Request> {
  readonly host: LookupHost<Request>;
  readonly exchange: Exchange<Request>;
  readonly directives: RequestDirectives;
  readonly key: string;
  readonly tags: readonly string[];
  readonly now: number;
  isAnswered = false;
  isLeading = false;
  call: Promise<StoredValue | undefined> | undefined;
  mayServeStale: boolean;
  thrown: { readonly error: unknown } | undefined;

  constructor(
    host: LookupHost<Request>,
    exchange: Exchange<Request>,
    directives: RequestDirectives,
    key: string,
    tags: readonly string[],
  ) {
    this.host = host;
    this.exchange = exchange;
    this.directives = directives;
    this.key = key;
    this.tags = tags;
    this.now = host.now();
    this.mayServeStale = exchange.canRunAgain;
  }

  run(): Promise<void> {
    const { request } = this.exchange;
    const isLook =
      request.method === "HEAD" || this.directives.onlyIfCached || request.header("range") !== undefined;
    if (isLook) return this.#look();
    const { unstorable, options } = this.host;
    if (isFilling(request.message, options.cache, this.key))
      return this.host.pass(this.exchange, { reason: "bypass", detail: "nested" });
    if (unstorable.isAnybodyWaiting && unstorable.isWaitedForInVain(this.key))
      return this.#pass("unstorable");
    return this.#load(this.key, undefined, false).then(
      (value) => {
        const stored = value === undefined ? undefined : this.host.prepared.of(this.key, value);
        if (stored !== undefined && !this.isAnswered && this.#use(stored, value!, this.key)) return undefined;
        return this.#seek(this.key, undefined, { value });
      },
      (error: unknown) => this.#seek(this.key, undefined, { value: this.#failed(error) }),
    );
  }

  answer(stored: ReadyResponse, value: StoredValue, said?: string): void {
    this.isAnswered = true;
    this.exchange.reply(stored.reply(this.exchange.request, value, this.host.now(), said));
  }

  /** `first`: what the first question brought, where it was asked already. */
  async #seek(key: string, index: VaryIndex | undefined, first?: { value: Answer }): Promise<void> {
    let isForced = false;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const isAsked = attempt === 0 && first !== undefined;
      const value = isAsked ? first.value : await this.#ask(key, index, isForced);
      if (this.isAnswered) return;
      if (this.thrown !== undefined && value === undefined) throw this.thrown.error;
      if (value === undefined) break;
      if (value === ABORTED) continue;
      if (index === undefined) {
        const found = this.#indexIn(value);
        if (found !== undefined) return this.#seek(this.#variant(found), found);
      }
      const stored = this.host.prepared.of(key, value);
      if (stored !== undefined && this.#use(stored, value, key)) return;
      // Somebody else's load is to be waited for; what no load will change has to be loaded again.
      if (this.mayServeStale && stored !== undefined) this.mayServeStale = false;
      else isForced = true;
    }
    return this.#pass("unstorable");
  }

  /** Whether the stored response was the answer. */
  #use(stored: ReadyResponse, value: StoredValue, key: string): boolean {
    const use = this.directives.use(stored, this.now);
    if (use === "fresh" || (use === "while-revalidating" && this.mayServeStale && !this.isLeading)) {
      this.host.told("hit", key, this.exchange.native);
      this.answer(stored, value);
      return true;
    }
    const staleMs = -stored.freshMs(this.now);
    const isForError = this.thrown !== undefined || (!this.mayServeStale && staleMs > STORING_MS);
    if (!isForError || staleMs > stored.head.staleIfErrorMs) return false;
    this.host.told("hit", key, this.exchange.native);
    this.answer(stored, value);
    return true;
  }

  #load(key: string, index: VaryIndex | undefined, isForced: boolean): Promise<Answer> {
    const { options, loadTerms } = this.host;
    const terms = loadTerms(this.tags, this.mayServeStale, isForced);
    return options.cache.getOrSet<Answer>(
      key,
      (context) => new Fill(this, key, index, isForced).run(context),
      terms,
    );
  }

  async #ask(key: string, index: VaryIndex | undefined, isForced: boolean): Promise<Answer> {
    try {
      return await this.#load(key, index, isForced);
    } catch (error) {
      return this.#failed(error);
    }
  }

  #failed(error: unknown): undefined {
    if (error instanceof HandlerFailure) this.#failedHandler(error);
    else this.host.failed(error);
  }

  /** The handler failed and there is nothing in its place any more: its own client gets what it said. */
  #failedHandler({ visit, reply }: HandlerFailure): void {
    if (visit !== this || reply === undefined) return;
    this.isAnswered = true;
    const { statusField } = this.host;
    const said = statusField.forwarded({ reason: "stale" });
    this.exchange.reply({ ...reply, headers: statusField.add(reply.headers, said) });
  }

  /** For requests that fill nothing: a HEAD, a part, or only what is there. */
  async #look(): Promise<void> {
    const { cache } = this.host.options;
    try {
      let key = this.key;
      let value = await cache.get<StoredValue>(key);
      const index = value === undefined ? undefined : this.#indexIn(value);
      if (index !== undefined) {
        key = this.#variant(index);
        value = await cache.get<StoredValue>(key);
      }
      const stored = value === undefined ? undefined : this.host.prepared.of(key, value);
      if (stored !== undefined && this.directives.use(stored, this.now) === "fresh") {
        this.host.told("hit", key, this.exchange.native);
        return this.answer(stored, value!);
      }
    } catch (error) {
      this.host.failed(error);
    }
    this.host.told("miss", this.key, this.exchange.native);
    if (this.directives.onlyIfCached) return this.#notCached();
    return this.#pass();
  }

  /** RFC 9111, 5.2.1.7. */
  #notCached(): void {
    const { statusField } = this.host;
    const said = statusField.forwarded({ reason: "uri-miss", detail: "only-if-cached" });
    const headers = statusField.add(["Content-Length", "0"], said);
    this.exchange.reply({ status: 504, message: "", headers, body: undefined, isPlain: false });
  }

  #pass(detail?: string): Promise<void> {
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
