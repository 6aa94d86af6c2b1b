// Responses of node:http and node:http2: sending a cached one, and intercepting the handler's.
import { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Reply, ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import type { HeaderList } from "../message/header-list.ts";

export type NodeResponse = ServerResponse | Http2ServerResponse;

/** The methods both kinds share, with the signatures used here. */
interface Sink {
  statusCode: number;
  statusMessage: string;
  writeHead(...args: unknown[]): unknown;
  write(chunk: unknown, encoding?: unknown, done?: unknown): boolean;
  end(chunk?: unknown, encoding?: unknown, done?: unknown): unknown;
  flushHeaders(): void;
  setHeader(name: string, value: string | readonly string[]): void;
  getHeader(name: string): number | string | readonly string[] | undefined;
  getHeaderNames(): string[];
  getRawHeaderNames?(): string[];
  removeHeader(name: string): void;
  once(event: string, listener: () => void): void;
  emit(event: string): boolean;
}

const sinkOf = (response: NodeResponse): Sink => response as unknown as Sink;

/** A repeated field becomes one field with several values. */
export function setHeaders(response: NodeResponse, list: HeaderList): void {
  setFields(sinkOf(response), list);
}

function setFields(sink: Sink, list: HeaderList): void {
  const fields = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at]!;
    const field = fields.get(name.toLowerCase());
    if (field === undefined) fields.set(name.toLowerCase(), { name, values: [list[at + 1]!] });
    else field.values.push(list[at + 1]!);
  }
  for (const { name, values } of fields.values())
    sink.setHeader(name, values.length === 1 ? values[0]! : values);
}

function headersOf(sink: Sink): string[] {
  const list: string[] = [];
  for (const name of sink.getRawHeaderNames?.() ?? sink.getHeaderNames()) {
    const value = sink.getHeader(name);
    if (Array.isArray(value)) for (const line of value) list.push(name, String(line));
    else if (value !== undefined) list.push(name, String(value));
  }
  return list;
}

function replaceHeaders(sink: Sink, list: HeaderList): void {
  for (const name of sink.getHeaderNames()) sink.removeHeader(name);
  setFields(sink, list);
}

const { writeHead } = ServerResponse.prototype;

/** Sends a reply. Fields already set are kept unless the reply has them. */
export function send(response: NodeResponse, reply: Reply): void {
  const sink = sinkOf(response);
  const { status, message, headers, body } = reply;
  // node:http is fastest with a flat list for writeHead. Lists with repeated names are not always accepted, node:http2 takes
  // none, and a writeHead patched by other middleware may expect an object.
  if (!reply.isPlain || sink.writeHead !== writeHead) setHead(response, reply);
  else if (message === "") sink.writeHead(status, headers);
  else sink.writeHead(status, message, headers);
  if (body === undefined) sink.end();
  else sink.end(body, "latin1");
}

function setHead(response: NodeResponse, { status, message, headers }: ResponseHead): void {
  response.statusCode = status;
  if (message !== "" && !("stream" in response)) response.statusMessage = message;
  setHeaders(response, headers);
}

/**
 * Overridden in this order and restored in reverse: V8 then returns the object to its previous shape (up to Node 20). Any
 * other order turns it into a dictionary, which slows down node:http.
 */
const INTERCEPTED = ["end", "write", "flushHeaders", "writeHead", "headersSent"] as const;
type Intercepted = (typeof INTERCEPTED)[number];

/** Intercepts a handler's writes to its response until released. */
export class Interception {
  readonly #response: NodeResponse;
  readonly #sink: Sink;
  readonly #tap: Tap;
  /** Discards the response. */
  readonly #isDetached: boolean;
  readonly #before = new Map<Intercepted, PropertyDescriptor | undefined>();
  /** The number of INTERCEPTED methods that are, or may be, overridden. */
  #overridden = INTERCEPTED.length;
  #outer: HeaderList = [];
  #outerMessage = "";
  /** Whether the handler was called: a response before that is not its own. */
  #hasBegun = false;
  #verdict: Verdict | undefined;
  #isEnded = false;
  #hasThrown = false;
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
    const { write, end, flushHeaders } = this.#sink;
    this.#override("end", (chunk?: unknown, encoding?: unknown, done?: unknown) =>
      this.#end(end, chunk, encoding, done),
    );
    this.#override("write", (chunk: unknown, encoding?: unknown, done?: unknown) =>
      this.#write(write, chunk, encoding, done),
    );
    this.#override("flushHeaders", () => {
      this.#judge(undefined);
      if (this.#isSent) flushHeaders.call(this.#sink);
    });
    this.#override("writeHead", (...args: unknown[]) => this.#writeHead(args));
    this.#sink.once("close", () => {
      if (!this.#isEnded) tap.abort();
    });
  }

  /** The handler is called next: fields set so far, and those `pending`, belong to outer middleware. */
  begin(pending: HeaderList = []): void {
    this.#hasBegun = true;
    this.#outer = [...headersOf(this.#sink), ...pending];
    if (!("stream" in this.#response)) this.#outerMessage = this.#sink.statusMessage ?? "";
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

  /** Restores the response to its state before the handler, unless it was sent. */
  release(): void {
    this.#restoreTo("end");
    if (this.#response.headersSent) return;
    replaceHeaders(this.#sink, this.#outer);
    if (!("stream" in this.#response)) this.#sink.statusMessage = this.#outerMessage;
  }

  get #isSent(): boolean {
    return this.#verdict?.head !== undefined && !this.#isDetached;
  }

  #override(name: string, value: unknown): void {
    Object.defineProperty(this.#response, name, {
      value,
      configurable: true,
      writable: true,
      enumerable: true,
    });
  }

  /** Removes overrides in reverse order, down to and including `last`. */
  #restoreTo(last: Intercepted): void {
    while (this.#overridden > INTERCEPTED.indexOf(last)) {
      const name = INTERCEPTED[--this.#overridden]!;
      const before = this.#before.get(name);
      if (before === undefined) delete (this.#response as unknown as Record<string, unknown>)[name];
      else Object.defineProperty(this.#response, name, before);
    }
  }

  /** Only records the head: the next call may bring the whole body, whose ETag must go into the head. */
  #writeHead(args: unknown[]): NodeResponse {
    const [status, second, third] = args;
    this.#sink.statusCode = status as number;
    if (typeof second === "string" && !("stream" in this.#response)) this.#sink.statusMessage = second;
    applyGiven(this.#sink, typeof second === "string" ? third : second);
    this.#override("headersSent", true);
    return this.#response;
  }

  #judge(whole: Uint8Array | undefined): Verdict {
    if (this.#verdict !== undefined) return this.#verdict;
    const sink = this.#sink;
    const { statusCode: status } = sink;
    const head: ResponseHead = {
      status,
      message: "stream" in this.#response ? "" : sink.statusMessage || "",
      headers: headersOf(sink),
      isFromErrorHandler: this.#hasThrown,
    };
    // A response by outer middleware is not the handler's.
    const verdict = this.#hasBegun ? this.#tap.head(head, whole) : IGNORED;
    this.#verdict = verdict;
    this.#isWanted = verdict.wantsBody;
    if (!this.#isSent) {
      this.#override("headersSent", true);
      return verdict;
    }
    this.#restoreTo("flushHeaders");
    if (verdict.head!.headers !== head.headers) replaceHeaders(sink, verdict.head!.headers);
    return verdict;
  }

  #write(write: Sink["write"], chunk: unknown, encoding: unknown, done: unknown): boolean {
    this.#judge(undefined);
    const isWanted = this.#isWanted;
    if (isWanted) this.#isWanted = this.#tap.chunk(bytesOf(chunk, encoding));
    if (!this.#isSent) {
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") process.nextTick(callback as () => void);
      return true;
    }
    const isReady = write.call(this.#sink, chunk, encoding, done);
    // Other requests wait for the collected body: a slow client must not pause the handler.
    return isReady || this.#isWanted;
  }

  #end(end: Sink["end"], ...given: unknown[]): unknown {
    if (this.#isEnded) return this.#isSent ? end.apply(this.#sink, given as [unknown]) : this.#response;
    const [chunk, encoding] = typeof given[0] === "function" ? [] : given;
    const bytes = chunk === undefined || chunk === null ? undefined : bytesOf(chunk, encoding);
    const isWhole = this.#verdict === undefined;
    const verdict = this.#judge(bytes ?? EMPTY);
    this.#isEnded = true;
    if (!isWhole && this.#isWanted && bytes !== undefined) this.#tap.chunk(bytes);
    if (!this.#isSent) {
      const callback = given.find((argument) => typeof argument === "function");
      if (callback !== undefined) this.#sink.once("finish", callback as () => void);
      if (this.#isDetached) this.#finishDetached();
      if (this.#hasBegun) this.#tap.end();
      else this.#tap.abort();
      return this.#response;
    }
    const finish = (): void => void end.apply(this.#sink, given as [unknown]);
    this.#restoreTo("end");
    if (verdict.settled === undefined) finish();
    else void verdict.settled.then(finish);
    this.#tap.end();
    return this.#response;
  }

  #finishDetached(): void {
    for (const name of ["writableEnded", "finished", "headersSent"]) this.#override(name, true);
    process.nextTick(() => {
      this.#sink.emit("finish");
      this.#sink.emit("close");
    });
  }
}

/** Makes both own properties, in the order writeHead would, so that the overrides are added after them. */
function ownStatus(sink: Sink): void {
  const { statusMessage, statusCode } = sink;
  if (!Object.hasOwn(sink, "statusMessage")) sink.statusMessage = statusMessage;
  if (!Object.hasOwn(sink, "statusCode")) sink.statusCode = statusCode;
}

const EMPTY = new Uint8Array();
const IGNORED: Verdict = { head: undefined, wantsBody: false };

function bytesOf(chunk: unknown, encoding: unknown): Uint8Array {
  if (typeof chunk !== "string") return chunk as Uint8Array;
  return Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
}

/** writeHead accepts an object, a flat list or a list of pairs. */
function applyGiven(sink: Sink, given: unknown): void {
  if (Array.isArray(given)) {
    const flat: unknown[] = Array.isArray(given[0]) ? given.flat() : given;
    const list: string[] = [];
    for (let at = 0; at < flat.length; at += 2) {
      const name = String(flat[at]);
      sink.removeHeader(name);
      for (const line of [flat[at + 1]].flat()) list.push(name, String(line));
    }
    setFields(sink, list);
  } else if (typeof given === "object" && given !== null) {
    for (const [name, value] of Object.entries(given)) {
      if (value !== undefined) sink.setHeader(name, value as string | readonly string[]);
    }
  }
}
