// What the engine and an adapter say to each other. An adapter turns a framework's request and response into an Exchange;
// everything else is the engine's.
import type { HeaderList } from "./header-list.ts";
import type { Fill } from "./nested-caches.ts";

/** What the engine wants to know of a request. */
export interface RequestFacts {
  /** What whoever is called further in meets as well. */
  readonly message: object;
  /** In upper case. */
  readonly method: string;
  readonly isSecure: boolean;
  /** The Host field, or `:authority`. */
  readonly host: string;
  /** Path and query as they were sent. */
  readonly target: string;
  /** Whether a body comes with it. */
  readonly hasContent: boolean;
  /** A field, its lines joined by a comma; `name` in lower case. */
  header(name: string): string | undefined;
  /** Whether it has no field that a cache heeds, and no content; false also where nobody has looked. */
  readonly isPlain: boolean;
  /** All names, in lower case. */
  headerNames(): Iterable<string>;
}

export interface ResponseHead {
  readonly status: number;
  /** Reason phrase; empty for the usual one. */
  readonly message: string;
  readonly headers: HeaderList;
  /** The handler threw, and this is what somebody further out made of it. */
  readonly isMadeOfError?: boolean;
}

/** An answer in place of the handler's. */
export interface Reply extends ResponseHead {
  /** A string holds a byte a character (latin1). undefined: no body. */
  readonly body: string | Uint8Array | undefined;
  /** Whether no name is in the list twice; false also where nobody has looked. */
  readonly isPlain: boolean;
  /** Whether a string may be sent as UTF-8 as well: it is all ASCII, and a type is stated so that none is made up for it. */
  readonly isText?: boolean;
}

/** How the request of a handler that fills the cache differs from the client's. Names in lower case. */
export interface RequestChange {
  readonly fill: Fill;
  readonly remove: readonly string[];
  /** Name and value in turn. */
  readonly set: HeaderList;
}

/** What an adapter does with the head of the handler's response. */
export interface Verdict {
  /** What to send in its place, before the body; undefined: send nothing of the response at all. */
  readonly head: ResponseHead | undefined;
  /** Whether `chunk` wants the bytes of the body. */
  readonly wantsBody: boolean;
  /** The response must not end before this settles. It never rejects. */
  readonly settled?: Promise<unknown>;
}

/** Sees the handler's response on its way. Exactly one of `end` and `abort` is called, once. */
export interface Tap {
  /** Whether it gains from the whole body being there with the head, where that costs no waiting. */
  readonly wantsWhole: boolean;
  /** `body`: all of it, where the adapter has it already; then `chunk` is not called. */
  head(head: ResponseHead, body?: Uint8Array): Verdict;
  /** Says whether it wants more. Until then a slow client must not slow down the handler: others wait for the body. */
  chunk(bytes: Uint8Array): boolean;
  /** The handler has said all it had to say. */
  end(): void;
  /** The response ended early: the client left, the handler failed. */
  abort(): void;
}

export interface Exchange<Native = unknown> {
  readonly request: RequestFacts;
  /** The framework's own request, for the callbacks of the options. */
  readonly native: Native;
  /**
   * Answers without the handler, or in place of what it said. Takes what it needs of `headers` before it returns: the
   * list is used again.
   */
  reply(reply: Reply): void;
  /**
   * Calls the handler. Rejects or throws when the handler does; may return long before the response has ended.
   * Fields of the response that were there before the handler was called are left out of what is stored: `isOuter`.
   */
  forward(change: RequestChange | undefined, tap: Tap): void | Promise<void>;
  /** Whether a field of the response was set, with this value, before the handler was called. */
  isOuter?(name: string, value: string): boolean;
  /** Whether `background` can be called. */
  readonly canRunAgain: boolean;
  /** The same request once more, its response going to nobody. */
  background(): Exchange<Native>;
}
