// A stored response ready to send: its header lists are built once and reused for every hit.

import type { Reply, RequestInfo } from "../message/exchange.ts";
import { fieldOf, filterFields, hasField } from "../message/header-list.ts";
import type { StatusField } from "../protocol/cache-status.ts";
import { isNotModified, notModifiedHeaders } from "../protocol/conditional.ts";
import { isRangeOfThis, rangeOf } from "../protocol/range.ts";
import {
  bodyOf,
  decodeHead,
  isResponse,
  MARK_LENGTH,
  type StoredHead,
  type StoredValue,
  textOf,
} from "./stored-response.ts";

const OF_BODY = new Set(["age", "cache-control", "etag", "expires", "last-modified", "pragma"]);

/** A header list in which two values change over time. */
interface Block {
  readonly headers: string[];
  /** Indices of the Age and status values; -1 if there is none. */
  readonly ageAt: number;
  readonly statusAt: number;
}

export class ReadyResponse {
  readonly head: StoredHead;
  readonly mark: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  readonly date: string | undefined;
  /** When it becomes stale, in milliseconds since the epoch. */
  readonly freshUntil: number;
  readonly #bodyAt: number;
  readonly #hasBody: boolean;
  readonly #status: StatusField;
  readonly #full: Block;
  readonly #isPlain: boolean;
  readonly #isText: boolean;
  #notModified: Block | undefined;
  /** The age in seconds that the texts below were made for. */
  #age = -1;
  #ageText = "";
  #hitText = "";

  constructor(text: string, value: StoredValue, status: StatusField) {
    const { head, bodyAt } = decodeHead(text);
    this.head = head;
    this.freshUntil = head.bornAt + head.lifetimeMs;
    this.mark = text.slice(0, MARK_LENGTH);
    this.#bodyAt = bodyAt;
    this.#hasBody = !hasNoBody(head.status);
    this.#status = status;
    this.etag = fieldOf(head.headers, "etag");
    this.lastModified = fieldOf(head.headers, "last-modified");
    this.date = fieldOf(head.headers, "date");
    this.#isPlain = hasUniqueNames(head.headers);
    this.#isText =
      typeof value === "string" &&
      hasField(head.headers, "content-type") &&
      Buffer.byteLength(value) === value.length;
    const { length } = bodyOf(value, bodyAt);
    this.#full = this.#block(
      this.#hasBody ? [...head.headers, "Content-Length", String(length)] : [...head.headers],
    );
  }

  /** Whether it was built from this stored value. */
  isBuiltFrom(value: unknown): boolean {
    return textOf(value)?.startsWith(this.mark) === true;
  }

  ageMs(now: number): number {
    return Math.max(0, now - this.head.bornAt);
  }

  /** Milliseconds until it becomes stale; negative once it is. */
  freshMs(now: number): number {
    return this.head.lifetimeMs - this.ageMs(now);
  }

  /**
   * Whether it can answer what the request asks for, if it is fresh. Applications compress whole responses only: the ranges
   * they send are those of the plain body, which is not stored.
   */
  canServe(request: RequestInfo): boolean {
    return request.header("range") === undefined || !hasField(this.head.headers, "content-encoding");
  }

  /**
   * The reply to this request: the whole response, a range of it, or 304. `cacheStatus` replaces the status field's text
   * for a hit. The header list is reused by the next call.
   */
  reply(request: RequestInfo, value: StoredValue, now: number, cacheStatus?: string): Reply {
    const isOk = this.head.status === 200;
    if (isOk && isNotModified(request, this, now)) return this.notModified(now, cacheStatus);
    const whole = this.whole(value, now, cacheStatus);
    const { body, headers } = whole;
    if (body === undefined || request.method === "HEAD") return { ...whole, body: undefined };
    const range = isOk ? request.header("range") : undefined;
    if (range === undefined || !isRangeOfThis(request, this.etag, this.lastModified)) return whole;
    return partialReply(range, headers, body) ?? whole;
  }

  /** The whole response, without evaluating conditions or ranges. Headers and `cacheStatus` as for `reply`. */
  whole(value: StoredValue, now: number, cacheStatus?: string): Reply {
    const { status, message } = this.head;
    const headers = this.#withTime(this.#full, now, cacheStatus);
    const body = this.#hasBody ? bodyOf(value, this.#bodyAt) : undefined;
    return { status, message, headers, body, isPlain: this.#isPlain, isText: this.#isText };
  }

  notModified(now: number, cacheStatus?: string): Reply {
    this.#notModified ??= this.#block(notModifiedHeaders(this.head.headers));
    return {
      status: 304,
      message: "",
      headers: this.#withTime(this.#notModified, now, cacheStatus),
      body: undefined,
      isPlain: this.#isPlain,
    };
  }

  #block(headers: string[]): Block {
    const ageAt = headers.push("Age", "") - 1;
    const { name } = this.#status;
    return { headers, ageAt, statusAt: name === false ? -1 : headers.push(name, "") - 1 };
  }

  #withTime({ headers, ageAt, statusAt }: Block, now: number, cacheStatus: string | undefined): string[] {
    const age = Math.floor(this.ageMs(now) / 1000);
    if (age !== this.#age) {
      this.#age = age;
      this.#ageText = String(age);
      this.#hitText = this.#status.hit(Math.ceil(this.head.lifetimeMs / 1000) - age);
    }
    headers[ageAt] = this.#ageText;
    if (statusAt >= 0) headers[statusAt] = cacheStatus ?? this.#hitText;
    return headers;
  }
}

function hasUniqueNames(headers: readonly string[]): boolean {
  const names = new Set<string>();
  for (let at = 0; at < headers.length; at += 2) names.add(headers[at]!.toLowerCase());
  return names.size * 2 === headers.length;
}

/** RFC 9110, 15.3.5, 15.3.6 and 15.4.5: these statuses have no content. */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** Fields that describe a body or state a lifetime, which an error must not take over. */
function isOfBody(name: string): boolean {
  return name.startsWith("content-") || OF_BODY.has(name);
}

function partialReply(
  range: string,
  headers: readonly string[],
  body: string | Uint8Array,
): Reply | undefined {
  const wanted = rangeOf(range, body.length);
  if (wanted === undefined) return undefined;
  const rest: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== "Content-Length") rest.push(headers[at]!, headers[at + 1]!);
  }
  if (wanted === "unsatisfiable") {
    const own = filterFields(rest, (name) => !isOfBody(name));
    own.push("Content-Range", `bytes */${body.length}`, "Content-Length", "0");
    return { status: 416, message: "", headers: own, body: undefined, isPlain: false };
  }
  if (!hasField(rest, "accept-ranges")) rest.push("Accept-Ranges", "bytes");
  const { start, end } = wanted;
  rest.push(
    "Content-Range",
    `bytes ${start}-${end - 1}/${body.length}`,
    "Content-Length",
    String(end - start),
  );
  const part = typeof body === "string" ? body.slice(start, end) : body.subarray(start, end);
  return { status: 206, message: "", headers: rest, body: part, isPlain: false };
}

/** Bodies are not held, so each one is small and retains no stored value. */
const MAX_READY = 4_096;

/** Ready responses by key; one whose stored value changed is rebuilt. */
export class ReadyResponses {
  readonly #status: StatusField;
  readonly #byKey = new Map<string, ReadyResponse>();

  constructor(status: StatusField) {
    this.#status = status;
  }

  /** Undefined if the value is not a stored response. */
  of(key: string, value: unknown): ReadyResponse | undefined {
    const known = this.#byKey.get(key);
    if (known?.isBuiltFrom(value)) return known;
    const text = textOf(value);
    if (text === undefined) return undefined;
    return this.#build(key, text, value as StoredValue);
  }

  #build(key: string, text: string, value: StoredValue): ReadyResponse | undefined {
    if (!isResponse(text)) return undefined;
    let ready: ReadyResponse;
    try {
      ready = new ReadyResponse(text, value, this.#status);
    } catch {
      // Not written by this library.
      return undefined;
    }
    this.#byKey.delete(key);
    this.#byKey.set(key, ready);
    if (this.#byKey.size > MAX_READY) this.#byKey.delete(this.#byKey.keys().next().value!);
    return ready;
  }
}
