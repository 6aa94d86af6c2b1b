// Intercepts what a handler writes to its response, for a tap that decides what becomes of it.
import { atEndOfTurn } from "../../core/event-loop.ts";
import type { Reply, ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import { filterFields, type HeaderList } from "../message/header-list.ts";
import { LateFields } from "./late-fields.ts";
import {
  HELD,
  headersOf,
  isGone,
  type NodeResponse,
  onGone,
  replaceHeaders,
  type Sink,
  sentHeaders,
  sinkOf,
} from "./node-response.ts";
import { applyHead, isEndedByHead, isSendable, messageOf } from "./write-head.ts";

/**
 * Overridden in this order and restored in reverse: V8 then returns the object to its previous shape (up to Node 20). Any
 * other order turns it into a dictionary, which slows down node:http.
 */
const INTERCEPTED = ["end", "write", "flushHeaders", "writeHead"] as const;
type Intercepted = (typeof INTERCEPTED)[number];

/**
 * Intercepts a handler's writes to its response until released. It stands between the patches of inner middleware, which call
 * it, and those of outer middleware, which it calls in the same order as the handler would have without it.
 */
export class Interception {
  readonly #response: NodeResponse;
  readonly #sink: Sink;
  readonly #tap: Tap;
  /** Discards the response. */
  readonly #isDetached: boolean;
  readonly #before = new Map<Intercepted, PropertyDescriptor | undefined>();
  readonly #own = new Map<Intercepted, unknown>();
  /** The methods as outer middleware left them. */
  readonly #outward: Pick<Sink, "write" | "end" | "flushHeaders" | "writeHead">;
  /** The number of INTERCEPTED methods that are, or may be, overridden. */
  #overridden: number = INTERCEPTED.length;
  #outer: HeaderList = [];
  #outerMessage = "";
  /** As they were judged. */
  #judged: HeaderList | undefined;
  readonly late = new LateFields();
  /** Whether the handler was called: a response before that is not its own. */
  #hasBegun = false;
  /** The handler, or a patch of inner middleware, has called writeHead. */
  #isHeadWritten = false;
  /** As it was when the head was written: later changes have no effect. */
  #statusLine = { status: 200, message: "" };
  /** The reason phrase to set again; empty or undefined if node:http still chooses it. */
  #sentMessage = "";
  /** The handler itself called writeHead. Otherwise node:http calls it, and then knows the length of a body given to `end`. */
  #isHeadExplicit = false;
  #verdict: Verdict | undefined;
  /** Nothing follows what the handler has written so far. */
  #isWhole = false;
  #isEnded = false;
  #isOver = false;
  #isReplaced = false;
  #hasThrown = false;
  #hasCheckedSent = false;
  /** Whether the tap wants more of the body. */
  #isWanted = false;

  constructor(response: NodeResponse, tap: Tap, isDetached: boolean) {
    this.#response = response;
    this.#sink = sinkOf(response);
    this.#tap = tap;
    this.#isDetached = isDetached;
    if (!("stream" in response)) ownStatus(this.#sink);
    for (const name of INTERCEPTED) {
      this.#before.set(name, Object.getOwnPropertyDescriptor(response, name));
    }
    const { write, end, flushHeaders, writeHead } = this.#sink;
    this.#outward = { write, end, flushHeaders, writeHead };
    this.#override("end", (...given: unknown[]) => this.#end(given));
    this.#override("write", (...given: unknown[]) => this.#write(given));
    this.#override("flushHeaders", () => this.#flushHeaders());
    this.#override("writeHead", (...given: unknown[]) => this.#writeHead(given));
    if (isDetached) response.once("close", () => this.#abort());
    else onGone(response, () => this.#abort());
  }

  /** The handler is called next: fields set so far, and those `pending`, belong to outer middleware. */
  begin(pending: HeaderList = []): void {
    this.#hasBegun = true;
    this.#outer = [...headersOf(this.#sink), ...pending];
    this.#outerMessage = messageOf(this.#response);
  }

  /** The handler threw: the response that follows comes from an error handler. */
  handlerThrew(): void {
    this.#hasThrown = true;
  }

  /** Whether outer middleware had set the field to this value before the handler was called. */
  isOuter(name: string, value: string): boolean {
    for (let at = 0; at < this.#outer.length; at += 2) {
      if (this.#outer[at + 1] === value && this.#outer[at]!.toLowerCase() === name) return true;
    }
    return false;
  }

  /**
   * Restores the response to its state before the handler, unless it was sent, for another one. Returns that with what outer
   * middleware has added since.
   */
  releaseFor(reply: Reply): Reply {
    this.#hold(false);
    if (this.#isEnded && !this.#isSent) this.#markEnded(false);
    // Patches of inner middleware have seen the end of the handler's response, and may ignore a second one.
    for (let at = INTERCEPTED.length - 1; at >= 0; at--) this.#putBack(INTERCEPTED[at]!);
    this.#overridden = 0;
    if (this.#response.headersSent) return reply;
    // Cookies are for the client, no matter which middleware set them.
    const judged = this.#judged ?? this.#outer;
    replaceHeaders(this.#sink, [
      ...filterFields(this.#outer, (name) => name !== "set-cookie"),
      ...filterFields(judged, (name) => name === "set-cookie"),
    ]);
    if (!("stream" in this.#response)) this.#sink.statusMessage = this.#outerMessage;
    const headers = this.late.appliedTo(reply.headers, judged);
    return headers === reply.headers ? reply : { ...reply, headers, isPlain: false };
  }

  /** Another response was sent in place of the handler's, of which the rest is discarded. */
  replied(): void {
    this.#isReplaced = true;
    if (!this.#isWhole) for (const [name, value] of this.#own) defineOwn(this.#response, name, value);
    this.#checkSent();
  }

  /** A response that is discarded has no client to lose: its socket is that of a client that was served. */
  get #isGone(): boolean {
    return this.#isDetached ? this.#response.destroyed : isGone(this.#response);
  }

  get #isSent(): boolean {
    return this.#verdict?.head !== undefined && !this.#isDetached;
  }

  #override(name: Intercepted, value: unknown): void {
    this.#own.set(name, value);
    defineOwn(this.#response, name, value);
  }

  /**
   * Removes overrides in reverse order, down to and including `last`. Inner middleware that patched a method since keeps its
   * patch, behind which the override then only passes calls on.
   */
  #restoreTo(last: Intercepted): void {
    while (this.#overridden > INTERCEPTED.indexOf(last)) {
      const name = INTERCEPTED[--this.#overridden]!;
      const present = Object.getOwnPropertyDescriptor(this.#response, name)?.value;
      // Once the head is written the patches of writeHead have run: they must not run again when it is sent.
      const isDone = name === "writeHead" && this.#isHeadWritten;
      if (present !== this.#own.get(name) && !isDone) continue;
      this.#putBack(name);
    }
  }

  #putBack(name: Intercepted): void {
    const before = this.#before.get(name);
    if (before === undefined) delete (this.#response as unknown as Record<string, unknown>)[name];
    else Object.defineProperty(this.#response, name, before);
  }

  /** Only records the head: the next call may bring the whole body, whose ETag must go into the head. */
  #writeHead(given: unknown[]): unknown {
    if (this.#isGone) this.#abort();
    if (this.#isOver) return this.#outward.writeHead.apply(this.#sink, given);
    // As an error of node itself where a head was written before.
    if (this.#isHeadWritten) return this.#native("writeHead", given);
    const [status, second, third] = given;
    const message = typeof second === "string" ? second : undefined;
    const messageBefore = messageOf(this.#response);
    try {
      applyHead(this.#response, given, message === undefined ? (second ?? third) : third);
    } catch {
      // Outer middleware sees the call as well, and node itself refuses it.
      this.#abort();
      return this.#outward.writeHead.apply(this.#sink, given);
    }
    if ("stream" in this.#response) this.#sink.statusCode = Number(status);
    this.#statusLine = { status: this.#sink.statusCode, message: messageOf(this.#response) };
    this.#isHeadWritten = true;
    this.#isHeadExplicit = !this.#isImplying;
    this.#sentMessage =
      this.#isHeadExplicit || message !== undefined ? this.#statusLine.message : messageBefore;
    this.#hold(true);
    if (!this.#isImplying && isEndedByHead(this.#response)) this.#judge(undefined);
    return this.#response;
  }

  #native(name: "writeHead" | "write", given: unknown[]): unknown {
    const methods = Object.getPrototypeOf(this.#response) as Record<string, (...args: unknown[]) => unknown>;
    return methods[name]!.apply(this.#response, given);
  }

  /** Makes the response refuse further changes of its head, as after writeHead. */
  #hold(isHeld: boolean): void {
    if ("stream" in this.#response) {
      // All methods of the response look there.
      if (isHeld) defineOwn(this.#response.stream, "headersSent", true);
      else delete (this.#response.stream as { headersSent?: boolean }).headersSent;
    } else if (isHeld || (this.#response as { _header?: unknown })._header === HELD) {
      // node:http derives headersSent from it, and setHeader and removeHeader throw if it is set.
      (this.#response as { _header?: unknown })._header = isHeld ? HELD : null;
    }
  }

  #isImplying = false;

  #judge(whole: Uint8Array | undefined): Verdict {
    if (this.#verdict !== undefined) return this.#verdict;
    const sink = this.#sink;
    if (!this.#isHeadWritten) {
      if (!isSendable(this.#response)) {
        // Fails where node makes the head itself, which may be later if outer middleware delays the end.
        this.#abort();
        return IGNORED;
      }
      this.#isImplying = true;
      try {
        // As node:http would, so that the patches of inner middleware run.
        sink.writeHead(sink.statusCode);
      } finally {
        this.#isImplying = false;
      }
    }
    const head: ResponseHead = {
      status: this.#statusLine.status,
      message: this.#statusLine.message,
      headers: headersOf(sink),
      isFromErrorHandler: this.#hasThrown,
    };
    this.#judged = head.headers;
    this.late.end(head.headers);
    // A response by outer middleware is not the handler's.
    const verdict = this.#hasBegun ? this.#tap.head(head, whole) : IGNORED;
    this.#verdict = verdict;
    this.#isWanted = verdict.wantsBody;
    if (!this.#isSent) return verdict;
    this.#hold(false);
    this.#restoreTo("flushHeaders");
    sink.statusCode = this.#statusLine.status;
    if (!("stream" in this.#response)) sink.statusMessage = this.#sentMessage;
    if (verdict.head!.headers !== head.headers) replaceHeaders(sink, verdict.head!.headers);
    if (this.#isHeadExplicit) this.#pass(() => this.#outward.writeHead.call(sink, sink.statusCode));
    return verdict;
  }

  /** Calls outward. What fails there has not been sent, or not completely. */
  #pass<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      this.#abort();
      throw error;
    }
  }

  #flushHeaders(): void {
    if (this.#isGone) this.#abort();
    if (this.#isOver) {
      this.#outward.flushHeaders.call(this.#sink);
      return;
    }
    this.#judge(undefined);
    if (this.#isOver) {
      this.#outward.flushHeaders.call(this.#sink);
      return;
    }
    this.#tap.flushed?.();
    if (!this.#isSent) return;
    this.#pass(() => this.#outward.flushHeaders.call(this.#sink));
    this.#checkSent();
  }

  #write(given: unknown[]): boolean {
    const { write } = this.#outward;
    if (this.#isGone) this.#abort();
    if (this.#isOver) return write.apply(this.#sink, given as [unknown]);
    const [chunk, encoding] = given;
    // Throws or emits the error of node itself.
    if (this.#isEnded) return this.#native("write", given) as boolean;
    if (!isChunk(chunk) || !isIntact(chunk, encoding)) {
      this.#abort();
      return write.apply(this.#sink, given as [unknown]);
    }
    this.#judge(undefined);
    if (this.#isOver) return write.apply(this.#sink, given as [unknown]);
    if (this.#isWanted) this.#isWanted = this.#tap.chunk(bytesOf(chunk, encoding));
    if (!this.#isSent) {
      const callback = given.find((argument) => typeof argument === "function");
      if (callback !== undefined) process.nextTick(callback as () => void);
      return true;
    }
    const isReady = this.#pass(() => write.apply(this.#sink, given as [unknown]));
    this.#checkSent();
    // Other requests wait for the collected body: a slow client must not pause the handler.
    return isReady || this.#isWanted;
  }

  #end(given: unknown[]): unknown {
    const { end } = this.#outward;
    if (this.#isGone) this.#abort();
    if (this.#isOver || this.#isEnded) {
      return this.#isSent || this.#isOver ? end.apply(this.#sink, given as [unknown]) : this.#response;
    }
    const [chunk, encoding]: unknown[] = typeof given[0] === "function" ? [] : given;
    if ((!isChunk(chunk) && !isIgnoredAtEnd(chunk, this.#response)) || !isIntact(chunk, encoding)) {
      this.#abort();
      return end.apply(this.#sink, given as [unknown]);
    }
    const bytes = isChunk(chunk) ? bytesOf(chunk, encoding) : EMPTY;
    const isSingle = this.#verdict === undefined;
    this.#isWhole = true;
    this.#judge(bytes);
    if (this.#isOver) return end.apply(this.#sink, given as [unknown]);
    this.#isEnded = true;
    if (!isSingle && this.#isWanted && bytes.length > 0) this.#tap.chunk(bytes);
    if (!this.#isSent) {
      const callback = given.find((argument) => typeof argument === "function");
      if (callback !== undefined) this.#sink.once("finish", callback as () => void);
      if (this.#isDetached) this.#finishDetached();
      else if (!this.#isReplaced) this.#markEnded(true);
      if (this.#hasBegun) this.#tap.withheld?.();
      if (!this.#hasBegun) this.#abort();
      else if (this.#isReplaced) this.#completeWhenSent();
      else this.#complete();
      return this.#response;
    }
    this.#restoreTo("end");
    const returned = this.#pass(() => end.apply(this.#sink, given as [unknown]));
    this.#completeWhenSent();
    return returned;
  }

  #completeWhenSent(): void {
    // What the handler still does to a stream of HTTP/2 can reset it, although it has ended.
    if ("stream" in this.#response && this.#checkSent())
      atEndOfTurn(() => (isGone(this.#response) ? this.#abort() : this.#complete()));
    else if (this.#checkSent()) this.#complete();
    // Outer middleware takes its time, to save a session for example.
    else this.#sink.once("finish", () => this.#checkSent() && this.#complete());
  }

  /** Lets the tap see the fields that really left, once they have. */
  #checkSent(): boolean {
    if (this.#hasCheckedSent) return true;
    const sent = sentHeaders(this.#response);
    if (sent === undefined) return false;
    this.#hasCheckedSent = true;
    // The handler changed it between its end and that of outer middleware.
    if (this.#isSent && this.#sink.statusCode !== this.#statusLine.status) this.#abort();
    this.#tap.sent?.(sent);
    return true;
  }

  #complete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tap.end();
  }

  /** From now on the handler has the response to itself. */
  #abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#verdict === undefined) {
      // A stream of HTTP/2 that is gone takes no head any more: for the handler it was sent.
      if (!("stream" in this.#response && isGone(this.#response))) this.#hold(false);
      this.#restoreTo("end");
      const { status, message } = this.#statusLine;
      if (this.#isHeadWritten)
        this.#outward.writeHead.call(this.#sink, status, ...(message === "" ? [] : [message]));
    }
    this.#tap.abort();
  }

  /** The response is withheld, but over for the handler. */
  #markEnded(isEnded: boolean): void {
    if (!("stream" in this.#response)) (this.#response as { finished: boolean }).finished = isEnded;
  }

  #finishDetached(): void {
    for (const name of ["writableEnded", "finished", "headersSent"]) defineOwn(this.#response, name, true);
    process.nextTick(() => {
      this.#sink.emit("finish");
      this.#sink.emit("close");
    });
  }
}

function defineOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });
}

/** Makes both own properties, in the order writeHead would, so that the overrides are added after them. */
function ownStatus(sink: Sink): void {
  const { statusMessage, statusCode } = sink;
  if (!Object.hasOwn(sink, "statusMessage")) sink.statusMessage = statusMessage;
  if (!Object.hasOwn(sink, "statusCode")) sink.statusCode = statusCode;
}

/**
 * Whether text can be sent in this encoding; a callback may be in its place. node:http frames malformed text by the length it
 * should have.
 */
function isIntact(chunk: unknown, encoding: unknown): boolean {
  if (typeof chunk !== "string" || typeof encoding !== "string") return true;
  if (!Buffer.isEncoding(encoding)) return false;
  return Buffer.byteLength(chunk, encoding) === bytesOf(chunk, encoding).length;
}

const isChunk = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === "string" || chunk instanceof Uint8Array;

/** Whether `end` takes it for no chunk at all: node:http anything falsy, node:http2 what is not there. Any other is refused. */
const isIgnoredAtEnd = (chunk: unknown, response: NodeResponse): boolean =>
  "stream" in response ? chunk === undefined || chunk === null : !chunk;

function bytesOf(chunk: string | Uint8Array, encoding: unknown): Uint8Array {
  if (typeof chunk !== "string") return chunk;
  return Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
}

const EMPTY = new Uint8Array();
const IGNORED: Verdict = { head: undefined, wantsBody: false };
