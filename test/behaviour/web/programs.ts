// Random handlers that use a response of node:http in every order, right and wrong, with middleware that patches it on both
// sides. A program runs the same wherever it runs, so a server with a cache in front of it can be compared with a bare one.
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";

type Given = readonly unknown[];

/** A call of one method of the response, or something else a handler may do. */
export type Step =
  | { readonly do: "call"; readonly method: string; readonly given: Given }
  | { readonly do: "assign"; readonly field: "statusCode" | "statusMessage"; readonly value: unknown }
  | { readonly do: "wait" }
  | { readonly do: "pipe"; readonly parts: readonly string[] }
  | { readonly do: "throw" }
  | { readonly do: "next" }
  | { readonly do: "destroy" };

/** Patches a method of the response, as sessions, compression and logging do. */
export type Patch = "set-cookie" | "append" | "private" | "count-head" | "upper-case" | "end-later";

export interface Program {
  readonly outer: readonly Patch[];
  readonly inner: readonly Patch[];
  readonly method: string;
  readonly steps: readonly Step[];
}

const name = fc.constantFrom(
  "X-A",
  "x-b",
  "Content-Type",
  "Cache-Control",
  "Location",
  "ETag",
  "Link",
  "Vary",
  "Set-Cookie",
);
const value = fc.constantFrom<unknown>(
  "one",
  "text/plain; charset=utf-8",
  "max-age=60",
  "no-store",
  "Accept",
  ["a", "b"],
  7,
  "bad\nvalue",
  undefined,
);
const chunk = fc.constantFrom<unknown>(
  "abc",
  "ä€",
  "",
  Buffer.from("bytes"),
  new Uint8Array([65, 66]),
  "x".repeat(3_000),
);
const badChunk = fc.constantFrom<unknown>(undefined, null, 0, false, 12, {}, ["list"], Symbol.iterator);
const status = fc.constantFrom<unknown>(
  200,
  200,
  200,
  200,
  201,
  204,
  301,
  304,
  404,
  500,
  503,
  99,
  "200",
  Number.NaN,
  1_000,
);
const headers = fc.oneof(fc.dictionary(name, value, { maxKeys: 3 }), fc.constant(["X-A", "1", "X-B", "2"]));

const call = (method: string, ...given: fc.Arbitrary<unknown>[]): fc.Arbitrary<Step> =>
  fc.tuple(...given).map((values) => ({ do: "call", method, given: values }));

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: call("setHeader", name, value) },
  call("appendHeader", name, fc.constantFrom("one", "two")),
  call("removeHeader", name),
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("assign" as const),
      field: fc.constantFrom("statusCode" as const, "statusMessage" as const),
      value: fc.constantFrom<unknown>(200, 200, 404, "Fine", "bad\r\nreason"),
    }),
  },
  { weight: 2, arbitrary: call("writeHead", status) },
  call("writeHead", status, headers),
  call("writeHead", status, fc.constantFrom<unknown>("Reason", undefined), headers),
  call("flushHeaders"),
  { weight: 4, arbitrary: call("write", chunk) },
  call("write", fc.constantFrom("YWJj", "616263"), fc.constantFrom<unknown>("base64", "hex", "nonsense")),
  call("write", badChunk),
  { weight: 4, arbitrary: call("end") },
  { weight: 5, arbitrary: call("end", chunk) },
  call("end", badChunk),
  call("end", fc.constant("YWJj"), fc.constant("base64")),
  call("writeEarlyHints", fc.constant({ link: "</a.css>; rel=preload" })),
  call("addTrailers", fc.constant({ "x-trailer": "1" })),
  { weight: 2, arbitrary: fc.constant<Step>({ do: "wait" }) },
  fc.constant<Step>({ do: "pipe", parts: ["p1", "p2"] }),
  fc.constant<Step>({ do: "throw" }),
  fc.constant<Step>({ do: "next" }),
  fc.constant<Step>({ do: "destroy" }),
);

const patch = fc.constantFrom<Patch>(
  "set-cookie",
  "append",
  "private",
  "count-head",
  "upper-case",
  "end-later",
);

export const program: fc.Arbitrary<Program> = fc.record({
  outer: fc.array(patch, { maxLength: 2 }),
  inner: fc.array(patch, { maxLength: 2 }),
  method: fc.constantFrom("GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE"),
  steps: fc.array(step, { minLength: 1, maxLength: 6 }),
});

const isEncoding = (encoding: unknown): boolean =>
  typeof encoding === "string" && Buffer.isEncoding(encoding);

type Methods = Record<string, (...given: unknown[]) => unknown>;

/** What the program saw of the response after each step: what it returned or threw, and its state. */
export type Trace = string[];

/** Applies patches in the way the well-known packages do. */
export function applyPatches(response: ServerResponse, patches: readonly Patch[], place: string): void {
  for (const [at, kind] of patches.entries()) applyPatch(response, kind, `${place}-${at}`);
}

function setAll(response: ServerResponse, fields: unknown): void {
  const list = Array.isArray(fields) ? fields : Object.entries(fields ?? {}).flat();
  for (let at = 0; at < list.length; at += 2) response.setHeader(list[at], list[at + 1]);
}

function applyPatch(response: ServerResponse, kind: Patch, label: string): void {
  const methods = response as unknown as Methods;
  const { writeHead, write, end } = methods as Record<"writeHead" | "write" | "end", Methods[string]>;
  let heads = 0;
  const onHead = (hook: () => void): void => {
    let hasRun = false;
    methods.writeHead = function (this: unknown, ...given) {
      if (hasRun || response.headersSent) return writeHead.apply(this, given);
      hasRun = true;
      // As on-headers does: the fields given to writeHead are set first, so that the hook has the last word.
      const at = typeof given[1] === "string" || given.length > 2 ? 2 : 1;
      response.statusCode = given[0] as number;
      setAll(response, given[at]);
      hook();
      return writeHead.apply(this, given.slice(0, at));
    };
  };
  if (kind === "set-cookie") onHead(() => response.appendHeader("Set-Cookie", `${label}=1`));
  if (kind === "append") onHead(() => response.appendHeader("X-Patched", label));
  if (kind === "private") onHead(() => response.setHeader("Cache-Control", "private"));
  if (kind === "count-head") {
    methods.writeHead = function (this: unknown, ...given) {
      heads++;
      if (!response.headersSent) response.setHeader(`X-Heads-${label}`, String(heads));
      return writeHead.apply(this, given);
    };
  }
  if (kind === "upper-case") {
    // Works on the bytes, as compression does.
    const changed = ([first, encoding, ...rest]: unknown[]): unknown[] => {
      const isText = typeof first === "string" && (encoding === undefined || isEncoding(encoding));
      if (!isText && !(first instanceof Uint8Array)) return [first, encoding, ...rest];
      const bytes = isText
        ? Buffer.from(first, encoding as BufferEncoding)
        : Buffer.from(first as Uint8Array);
      return [bytes.map((byte) => (byte === 97 ? 65 : byte)), undefined, ...rest];
    };
    methods.write = function (this: unknown, ...given) {
      return write.apply(this, changed(given));
    };
    methods.end = function (this: unknown, ...given) {
      return end.apply(this, changed(given));
    };
  }
  if (kind === "end-later") {
    let isEnded = false;
    methods.end = function (this: unknown, ...given) {
      if (isEnded) return response;
      isEnded = true;
      setImmediate(() => {
        try {
          end.apply(this, given);
        } catch {
          destroy(response);
        }
      });
      return response;
    };
  }
}

/** Runs the steps; rejects if a step throws to the framework. `next`: where the framework has one. */
export async function perform(
  { steps, outer, inner, method }: Program,
  response: ServerResponse,
  trace: Trace,
  next?: (error?: unknown) => void,
): Promise<void> {
  const methods = response as unknown as Methods;
  const isDelayed = outer.includes("end-later") || inner.includes("end-later");
  // On HTTP/2 the last frame waits until the pages that the request changed are invalidated.
  const isHeld = "stream" in response && (method === "POST" || method === "DELETE");
  response.on("error", () => {});
  let isLeft = false;
  let isEnded = false;
  for (const one of steps) {
    // A head without a body ends a stream of HTTP/2.
    if (isHeld && (response as unknown as Http2ServerResponse).stream.writableEnded) isEnded = true;
    // What a handler still does while the end is delayed looks like the work of the middleware that delays it.
    if (isEnded && isDelayed) continue;
    // A stream that is destroyed meanwhile is reset.
    if (isEnded && isHeld && mayDestroy(one)) continue;
    // When a stream of HTTP/2 closes, and so what it still accepts, is up to the connection.
    if (isEnded && "stream" in response && one.do === "wait") continue;
    if (one.do === "call" && one.method === "end") isEnded = true;
    if (one.do === "wait") await nextTurn();
    else if (one.do === "destroy") destroy(response);
    else if (one.do === "throw") throw new Error("thrown by the handler");
    else if (one.do === "next") {
      if (next === undefined || isLeft) continue;
      isLeft = true;
      next();
    } else if (one.do === "assign") (response as unknown as Record<string, unknown>)[one.field] = one.value;
    else if (one.do === "pipe") {
      for (const part of one.parts) if (!response.writableEnded) response.write(part);
    } else trace.push(`${one.method} ${outcomeOf(methods, one.method, one.given, response)}`);
    trace.push(`${response.headersSent} ${response.writableEnded}`);
  }
  // What the framework does after `next` may come to nothing because the program went on writing: it would hang.
  const isOwn = !isLeft || response.headersSent;
  // node:http2 takes a response whose head it refused for ended, and never sends anything.
  if ("stream" in response && response.writableEnded && !response.headersSent && !isDelayed)
    destroy(response);
  if (!response.writableEnded && !response.destroyed && isOwn) response.end();
}

/** Without an error, a client of HTTP/2 could not distinguish it from an end. */
export function destroy(response: ServerResponse): void {
  response.destroy("stream" in response ? new Error("destroyed on purpose") : undefined);
}

/** On HTTP/2 a write after the end destroys the stream, and so does whatever throws. */
function mayDestroy(one: Step): boolean {
  return one.do === "call" ? one.method === "write" : one.do !== "next" && one.do !== "pipe";
}

function copyOf(item: unknown): unknown {
  if (Array.isArray(item)) return item.map(copyOf);
  const isRecord = typeof item === "object" && item !== null && !(item instanceof Uint8Array);
  return isRecord
    ? Object.fromEntries(Object.entries(item).map(([name, value]) => [name, copyOf(value)]))
    : item;
}

function isEmpty([chunk, encoding]: Given): boolean {
  if (typeof chunk !== "string" || (encoding !== undefined && !isEncoding(encoding))) return false;
  return Buffer.from(chunk, encoding as BufferEncoding).length === 0;
}

function outcomeOf(methods: Methods, method: string, given: Given, response: ServerResponse): string {
  if (typeof methods[method] !== "function") return "none";
  // After other chunks that were not yet sent, an empty one makes node:http2 send garbage.
  if ("stream" in response && isEmpty(given)) return "skipped";
  // Hints after the head would only garble the connection.
  if (method === "writeEarlyHints" && response.headersSent) return "skipped";
  try {
    // Copies, because node:http appends to a list of values that it was given.
    const returned = methods[method](...given.map(copyOf));
    return returned === response ? "itself" : typeof returned;
  } catch (error) {
    return `threw ${(error as NodeJS.ErrnoException).code ?? (error as Error).name}`;
  }
}
