// The interface between the engine and an adapter: an adapter presents a framework's request and response as an Exchange, the
// engine does the rest.
import type { HeaderList } from "./header-list.ts";

/** A request as the engine sees it. */
export interface RequestInfo {
  /** The underlying request object, which inner middleware receives as well. */
  readonly message: object;
  /** In upper case. */
  readonly method: string;
  readonly isSecure: boolean;
  /** The Host field, or `:authority`. */
  readonly host: string;
  /** The fields that are part of every key: see `selectorsOf`. Empty for most requests. */
  readonly selectors: string;
  /** Whether the client presented a TLS certificate. */
  readonly hasClientCertificate: boolean;
  /** Path and query as sent. */
  readonly target: string;
  /** Whether the request has a body. */
  readonly hasContent: boolean;
  /** The field's lines joined by a comma. `name` is in lower case. */
  header(name: string): string | undefined;
  /** True if the request has no content, no usual credentials and no field that affects caching; false if unknown. */
  readonly isPlain: boolean;
  /** All field names, in lower case. */
  headerNames(): Iterable<string>;
}

export interface ResponseHead {
  readonly status: number;
  /** Reason phrase; empty for the default one. */
  readonly message: string;
  readonly headers: HeaderList;
  /** The handler threw, and an outer error handler produced this response. */
  readonly isFromErrorHandler?: boolean;
}

/** A response sent instead of the handler's. */
export interface Reply extends ResponseHead {
  /** A string holds one byte per character (latin1). Undefined: no body. */
  readonly body: string | Uint8Array | undefined;
  /** True if no field name repeats; false if unknown. */
  readonly isPlain: boolean;
  /** Whether a string body may also be sent as UTF-8: it is ASCII, and a Content-Type prevents an invented one. */
  readonly isText?: boolean;
}

/** The key that a request on its way to the handler is filling. */
export interface Fill {
  readonly cache: object;
  /** The key of the URL, without a variant. */
  readonly key: string;
}

/** Changes to the client's request for a handler that fills the cache. Names are in lower case. */
export interface RequestChange {
  readonly fill: Fill;
  readonly remove: readonly string[];
  /** Alternating names and values. */
  readonly set: HeaderList;
}

/** What an adapter must do with the handler's response. */
export interface Verdict {
  /** The head to send instead of the handler's; undefined: send nothing of the response. */
  readonly head: ResponseHead | undefined;
  /** Whether to pass the body to `chunk`. */
  readonly wantsBody: boolean;
  /** The response must not end before this settles. It never rejects. */
  readonly settled?: Promise<unknown>;
}

/** Observes the handler's response on its way to the client. Either `end` or `abort` is called, exactly once. */
export interface Tap {
  /** Whether the adapter should pass the whole body with the head if it can do so without waiting. */
  readonly wantsWhole: boolean;
  /** Whether it wants the head even if the client leaves before that is sent: what the handler has done counts all the same. */
  readonly wantsUnsent?: boolean;
  /** Settles when nobody but the client wants the body any more. */
  readonly released?: Promise<unknown>;
  /** `body`: the complete body, if the adapter already has it; `chunk` is then not called. */
  head(head: ResponseHead, body?: Uint8Array): Verdict;
  /** Returns whether it wants more. While it does, a slow client must not slow down the handler: other requests wait. */
  chunk(bytes: Uint8Array): boolean;
  /**
   * The fields as they left, with what outer middleware added at the last moment. Called before `end` where the adapter can
   * see them.
   */
  sent?(headers: HeaderList): void;
  /** The handler wants the client to have what it wrote so far: it streams. */
  flushed?(): void;
  /** A withheld response is complete: the time to reply in its place. Called before `end`. */
  withheld?(): void;
  /** The handler's response is complete. */
  end(): void;
  /** The response ended early: the client disconnected or the handler failed. */
  abort(): void;
}

export interface Exchange<Native = unknown> {
  readonly request: RequestInfo;
  /** The framework's request, for the callbacks of the options. */
  readonly native: Native;
  /**
   * Answers without the handler, or instead of its response. Must copy what it needs of `headers` before it returns: the
   * list is reused.
   */
  reply(reply: Reply): void;
  /**
   * Calls the handler. Rejects or throws if the handler does; may return long before the response ends. Response fields
   * that outer middleware had already set are not stored: see `isOuter`.
   */
  forward(change: RequestChange | undefined, tap: Tap): void | Promise<void>;
  /** Whether outer middleware had set this field to this value before the handler was called. */
  isOuter?(name: string, value: string): boolean;
  /** Whether outer middleware added this line after the handler, as it does to stored responses. */
  isLate?(name: string, value: string): boolean;
  /** Request fields by which the response is selected although its Vary may not say so. */
  readonly varyBy?: readonly string[];
  /** Why this request must reach its handler, as `detail` of Cache-Status. */
  readonly bypass?: string | undefined;
  /** The client has left: a handler that is called now would work for nobody, and may wait forever for its response to close. */
  readonly isAbandoned?: boolean;
  /** Whether `background` may be called. */
  readonly canRunAgain: boolean;
  /** The same request again, without a client: its response is discarded. */
  background(): Exchange<Native>;
}

// Nested caches: when the application and a route both use a cache, the inner one must not wait for the key that the outer one
// is filling through it.
const fills = new WeakMap<object, Fill[]>();

/** `message`: the request object passed to the handler. */
export function beginFill(message: object, fill: Fill): void {
  const outer = fills.get(message);
  if (outer === undefined) fills.set(message, [fill]);
  else outer.push(fill);
}

export function isFilling(message: object, cache: object, key: string): boolean {
  return fills.get(message)?.some((fill) => fill.cache === cache && fill.key === key) ?? false;
}
