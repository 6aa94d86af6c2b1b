// A stored response made ready to be sent: its header blocks are built once and used for every hit.

import type { Reply, RequestFacts } from "../message/exchange.ts";
import { fieldOf, hasField } from "../message/header-list.ts";
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

/** A header list of which two values change with the time. */
interface Block {
  readonly headers: string[];
  /** Where in it the age and the status stand; -1: nowhere. */
  readonly ageAt: number;
  readonly statusAt: number;
}

export class ReadyResponse {
  readonly head: StoredHead;
  readonly mark: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  readonly date: string | undefined;
  /** As `freshMs` says; in milliseconds since the epoch. */
  readonly freshUntil: number;
  readonly #bodyAt: number;
  readonly #hasBody: boolean;
  readonly #status: StatusField;
  readonly #full: Block;
  readonly #isPlain: boolean;
  readonly #isText: boolean;
  #notModified: Block | undefined;
  /** The second for which the texts below are right. */
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
    this.#isPlain = hasNoRepetition(head.headers);
    this.#isText =
      typeof value === "string" &&
      hasField(head.headers, "content-type") &&
      Buffer.byteLength(value) === value.length;
    const { length } = bodyOf(value, bodyAt);
    this.#full = this.#block(
      this.#hasBody ? [...head.headers, "Content-Length", String(length)] : [...head.headers],
    );
  }

  /** Whether it was made of this value. */
  isOf(value: unknown): boolean {
    return textOf(value)?.startsWith(this.mark) === true;
  }

  ageMs(now: number): number {
    return Math.max(0, now - this.head.bornAt);
  }

  /** Milliseconds it stays fresh; below 0: how long it has been stale. */
  freshMs(now: number): number {
    return this.head.lifetimeMs - this.ageMs(now);
  }

  /**
   * The answer to this request: all of it, a part, or that nothing has changed. `said` replaces what the status field
   * says of a hit. The list of headers is good until the next call.
   */
  reply(request: RequestFacts, value: StoredValue, now: number, said?: string): Reply {
    const isOk = this.head.status === 200;
    if (isOk && isNotModified(request, this, now)) return this.notModified(now, said);
    const whole = this.whole(value, now, said);
    const { body, headers } = whole;
    if (body === undefined || request.method === "HEAD") return { ...whole, body: undefined };
    const range = isOk ? request.header("range") : undefined;
    if (range === undefined || !isRangeOfThis(request, this.etag, this.lastModified)) return whole;
    return partOf(range, headers, body) ?? whole;
  }

  /** The answer to a request that asks for all of it, whatever the client has. Headers and `said` as for `reply`. */
  whole(value: StoredValue, now: number, said?: string): Reply {
    const { status, message } = this.head;
    const headers = this.#timed(this.#full, now, said);
    const body = this.#hasBody ? bodyOf(value, this.#bodyAt) : undefined;
    return { status, message, headers, body, isPlain: this.#isPlain, isText: this.#isText };
  }

  notModified(now: number, said?: string): Reply {
    this.#notModified ??= this.#block(notModifiedHeaders(this.head.headers, this.etag));
    return {
      status: 304,
      message: "",
      headers: this.#timed(this.#notModified, now, said),
      body: undefined,
      isPlain: this.#isPlain,
    };
  }

  #block(headers: string[]): Block {
    const ageAt = headers.push("Age", "") - 1;
    const { name } = this.#status;
    return { headers, ageAt, statusAt: name === false ? -1 : headers.push(name, "") - 1 };
  }

  #timed({ headers, ageAt, statusAt }: Block, now: number, said: string | undefined): string[] {
    const age = Math.floor(this.ageMs(now) / 1000);
    if (age !== this.#age) {
      this.#age = age;
      this.#ageText = String(age);
      this.#hitText = this.#status.hit(Math.ceil(this.head.lifetimeMs / 1000) - age);
    }
    headers[ageAt] = this.#ageText;
    if (statusAt >= 0) headers[statusAt] = said ?? this.#hitText;
    return headers;
  }
}

function hasNoRepetition(headers: readonly string[]): boolean {
  const names = new Set<string>();
  for (let at = 0; at < headers.length; at += 2) names.add(headers[at]!.toLowerCase());
  return names.size * 2 === headers.length;
}

/** RFC 9110, 15.3.5 and 15.4.5: these have no content, and no length to speak of. */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function partOf(range: string, headers: readonly string[], body: string | Uint8Array): Reply | undefined {
  const wanted = rangeOf(range, body.length);
  if (wanted === undefined) return undefined;
  const rest: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== "Content-Length") rest.push(headers[at]!, headers[at + 1]!);
  }
  if (wanted === "unsatisfiable") {
    rest.push("Content-Range", `bytes */${body.length}`, "Content-Length", "0");
    return { status: 416, message: "", headers: rest, body: undefined, isPlain: false };
  }
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

/** How many heads are kept ready. Without bodies, so that they weigh little and keep nothing alive. */
const KEPT = 4_096;

/** Prepared responses by key; one that is not the stored one any more is made anew. */
export class ReadyResponses {
  readonly #status: StatusField;
  readonly #byKey = new Map<string, ReadyResponse>();

  constructor(status: StatusField) {
    this.#status = status;
  }

  /** undefined when the value is not a stored response. */
  of(key: string, value: unknown): ReadyResponse | undefined {
    const known = this.#byKey.get(key);
    if (known?.isOf(value)) return known;
    const text = textOf(value);
    if (text === undefined) return undefined;
    return this.#prepare(key, text, value as StoredValue);
  }

  #prepare(key: string, text: string, value: StoredValue): ReadyResponse | undefined {
    if (!isResponse(text)) return undefined;
    let prepared: ReadyResponse;
    try {
      prepared = new ReadyResponse(text, value, this.#status);
    } catch {
      // Somebody else wrote it.
      return undefined;
    }
    this.#byKey.delete(key);
    this.#byKey.set(key, prepared);
    if (this.#byKey.size > KEPT) this.#byKey.delete(this.#byKey.keys().next().value!);
    return prepared;
  }
}
