// A response that is passed on: it stays the handler's own object and behaves as such. Only its head is seen, and gets a field.
import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import type { HeaderList } from "../message/header-list.ts";
import { headersOf, type NodeResponse, onGone, sentHeaders, setFields } from "./node-response.ts";
import { givenHeaders } from "./write-head.ts";

/**
 * Calls `tap.head` when the head is about to be sent. The response does not leave before the verdict has settled. The function
 * that is returned reports that the handler has ended, where that ends the response.
 */
export function observeHead(response: NodeResponse, tap: Tap): () => void {
  const before = response.writeHead as (...given: unknown[]) => unknown;
  const own = Object.getOwnPropertyDescriptor(response, "writeHead");
  let verdict: Verdict | undefined;
  let isSeen = false;
  const writeHead = (...given: unknown[]): unknown => {
    let passed = given;
    // A head that is refused may be followed by another, of an error page.
    if (!response.headersSent) {
      const headers = [...headersOf(response)];
      applyOver(headers, givenHeaders(fieldsIn(given)));
      isSeen = true;
      verdict = tap.head({ status: Number(given[0]), message: "", headers });
      passed = withFields(given, addedFields(headers, verdict.head?.headers ?? []));
    }
    if (verdict?.settled !== undefined) holdBack(response, verdict.settled);
    const returned = before.apply(response, passed);
    if (response.writeHead === writeHead) restore(response, own);
    verdict = undefined;
    return returned;
  };
  define(response, "writeHead", writeHead);
  if (tap.wantsUnsent !== true) return () => {};
  let isGone = false;
  let isOver = false;
  /** Once its client has left, a response ends without a head. */
  const report = (): void => {
    if (!isGone || !isOver || isSeen) return;
    isSeen = true;
    tap.head({ status: response.statusCode, message: "", headers: headersOf(response) });
  };
  const over = (): void => {
    isOver = true;
    report();
  };
  onGone(response, () => {
    isGone = true;
    report();
    if (isSeen) return;
    const end = response.end as (...given: unknown[]) => unknown;
    define(response, "end", (...given: unknown[]) => {
      const returned = end.apply(response, given);
      over();
      return returned;
    });
  });
  return over;
}

/** The fields among the arguments of writeHead. */
const fieldsIn = ([, second, third]: readonly unknown[]): unknown =>
  typeof second === "string" ? third : (third ?? second);

/**
 * The arguments of writeHead with these fields, which come last: how much of a head that it refuses a response keeps depends on
 * the fields set before and on the order of those given.
 */
function withFields(given: unknown[], added: readonly string[]): unknown[] {
  if (added.length === 0) return given;
  const [status, second] = given;
  const fields = fieldsIn(given);
  const rest = typeof second === "string" ? [status, second] : [status];
  const names = new Set<string>();
  for (let at = 0; at < added.length; at += 2) names.add(added[at]!.toLowerCase());
  const isKept = (name: unknown): boolean => !names.has(String(name).toLowerCase());
  if (!Array.isArray(fields)) {
    const kept = Object.entries(fields ?? {}).filter(([name]) => isKept(name));
    return [...rest, { ...Object.fromEntries(kept), ...recordOf(added) }];
  }
  if (Array.isArray(fields[0])) {
    const kept = (fields as unknown[][]).filter((pair) => isKept(pair[0]));
    return [...rest, [...kept, ...Object.entries(recordOf(added))]];
  }
  const kept = (fields as unknown[]).filter((_, at) => isKept(fields[at - (at % 2)]));
  return [...rest, [...kept, ...added]];
}

/** A repeated field becomes one with several values. */
function recordOf(list: HeaderList): Record<string, string | readonly string[]> {
  const record: Record<string, string | readonly string[]> = {};
  const setHeader = (name: string, value: string | readonly string[]): void => {
    record[name] = value;
  };
  setFields({ setHeader }, list);
  return record;
}

function define(response: NodeResponse, name: "writeHead" | "end", value: unknown): void {
  Object.defineProperty(response, name, { value, configurable: true, writable: true, enumerable: true });
}

/** The head of a response when it is sent; undefined if it never is. */
export function headWhenSent(response: NodeResponse): Promise<ResponseHead | undefined> {
  const before = response.writeHead as (...given: unknown[]) => unknown;
  const own = Object.getOwnPropertyDescriptor(response, "writeHead");
  return new Promise((resolve) => {
    const writeHead = function (this: unknown, ...given: unknown[]): unknown {
      const returned = before.apply(this, given);
      if (response.writeHead === writeHead) restore(response, own);
      const headers = sentHeaders(response);
      resolve(headers === undefined ? undefined : { status: response.statusCode, message: "", headers });
      return returned;
    };
    define(response, "writeHead", writeHead);
    response.once("close", () => resolve(undefined));
  });
}

function restore(response: NodeResponse, own: PropertyDescriptor | undefined): void {
  if (own === undefined) delete (response as { writeHead?: unknown }).writeHead;
  else Object.defineProperty(response, "writeHead", own);
}

/** Fields given to writeHead replace those set before. */
function applyOver(headers: string[], given: readonly string[]): void {
  const names = new Set<string>();
  for (let at = 0; at < given.length; at += 2) names.add(given[at]!.toLowerCase());
  for (let at = headers.length - 2; at >= 0; at -= 2)
    if (names.has(headers[at]!.toLowerCase())) headers.splice(at, 2);
  headers.push(...given);
}

/** The fields of `after` that `before` does not have, or not like this. */
function addedFields(before: readonly string[], after: readonly string[]): string[] {
  const known = new Set<string>();
  for (let at = 0; at < before.length; at += 2) known.add(`${before[at]}:${before[at + 1]}`);
  const added: string[] = [];
  for (let at = 0; at < after.length; at += 2)
    if (!known.has(`${after[at]}:${after[at + 1]}`)) added.push(after[at]!, after[at + 1]!);
  return added;
}

/** Keeps the bytes of the response in this process until `settled`, without the response noticing. */
function holdBack(response: NodeResponse, settled: Promise<unknown>): void {
  if ("stream" in response) holdLastFrame(response.stream, settled);
  else holdSocket(response, settled);
}

function holdSocket(response: ServerResponse, settled: Promise<unknown>): void {
  let isSettled = false;
  const hold = (socket: Socket): void => {
    if (isSettled) return;
    socket.cork();
    void settled.then(() => socket.uncork());
  };
  void settled.then(() => {
    isSettled = true;
  });
  if (response.socket) hold(response.socket);
  // A pipelined response gets its socket later.
  else response.once("socket", hold);
}

/** A stream of HTTP/2 cannot be corked once it ends, so its last frame waits. */
function holdLastFrame(stream: ServerHttp2Stream, settled: Promise<unknown>): void {
  const own = stream as unknown as HeldStream;
  const { respond, _final: final } = own;
  // A head that is known to have no body would be the last frame itself.
  own.respond = (headers, options) => {
    respond.call(stream, headers, { ...options, endStream: false });
    if (options.endStream) stream.end();
  };
  own._final = (done) => void settled.then(() => final.call(stream, done));
}

interface HeldStream {
  respond(headers: object, options: { readonly endStream?: boolean }): void;
  _final(done: () => void): void;
}
