// Random handlers that use what a framework offers to respond, in every order, among its middleware and hooks. The same program
// runs in a bare application and in one behind the cache.
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";

/** The name of an operation and what it is given. */
export type Step = readonly [name: string, ...given: unknown[]];

export interface FrameworkProgram {
  /** Where the cache is in the application. */
  readonly place: string;
  /** Middleware or hooks in front of the cache, and behind it. */
  readonly outer: readonly string[];
  readonly inner: readonly string[];
  readonly steps: readonly Step[];
}

const step = (name: string, ...given: fc.Arbitrary<unknown>[]): fc.Arbitrary<Step> =>
  fc.tuple(fc.constant(name), ...given) as unknown as fc.Arbitrary<Step>;

const field = fc.constantFrom(
  "X-A",
  "Content-Type",
  "Cache-Control",
  "ETag",
  "Vary",
  "Set-Cookie",
  "Content-Encoding",
  "Connection",
);
const value = fc.constantFrom<unknown>(
  "one",
  "text/plain",
  "application/json",
  "max-age=60",
  "private",
  "Accept",
  "3",
  "identity",
  '"v1"',
);
const status = fc.constantFrom(200, 200, 201, 204, 205, 301, 304, 400, 404, 500, 503);
/** Bodies; a stream is named by what becomes of it. */
const content = fc.constantFrom<unknown>(
  "text",
  "ä€",
  "",
  "<p>page</p>",
  Buffer.from("bytes"),
  Buffer.alloc(0),
  { a: 1 },
  [],
  null,
  undefined,
  true,
  7,
);
const stream = fc.constantFrom("whole", "whole", "late", "empty", "fails at once", "fails half way");
const kind = fc.constantFrom("text", "html", "json", "application/octet-stream", "text/event-stream");
const wait = step("wait");

/** A stream of Node that ends, or fails, as its name says. */
export function streamOf(name: string): Readable {
  if (name === "fails at once") {
    return new Readable({
      read() {
        this.destroy(new Error("failed on purpose"));
      },
    });
  }
  const parts: (string | undefined)[] = name === "empty" ? [] : ["part 1 ", "part 2 "];
  const source = new Readable({
    read() {
      const next = parts.shift();
      const go = (): void => {
        if (next !== undefined) this.push(next);
        else if (name === "fails half way") this.destroy(new Error("failed on purpose"));
        else this.push(null);
      };
      if (name === "late") setImmediate(go);
      else go();
    },
  });
  return source;
}

export function webStreamOf(name: string): ReadableStream {
  return Readable.toWeb(streamOf(name)) as ReadableStream;
}

/** A folder with one file, for what sends files. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "xcache-programs-"));
  readonly file = join(this.path, "file.txt");

  constructor() {
    writeFileSync(this.file, "0123456789");
  }

  open(): Readable {
    return createReadStream(this.file);
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}

/** What a program does to the response of Node behind the framework. */
export const RAW: fc.Arbitrary<Step> = fc.oneof(
  step("raw.setHeader", fc.constantFrom("X-Raw", "Set-Cookie"), fc.constant("1")),
  step("raw.writeHead", fc.constantFrom(200, 404)),
  step("raw.write", fc.constantFrom("raw ", "")),
  step("raw.end", fc.constantFrom<unknown>("raw end", undefined)),
  step("raw.flushHeaders"),
  step("raw.writeEarlyHints", fc.constant({ link: "</a.css>; rel=preload" })),
  step("raw.addTrailers", fc.constant({ "x-trailer": "1" })),
  step("raw.cork"),
  step("raw.uncork"),
  step("raw.destroy"),
);

export function performRaw(response: ServerResponse, name: string, given: readonly unknown[]): void {
  const method = name.slice("raw.".length);
  // Hints after the head would only garble the connection.
  if (method === "writeEarlyHints" && response.headersSent) return;
  (response as unknown as Record<string, (...given: unknown[]) => unknown>)[method]!(...given);
}

function program(
  places: readonly string[],
  middleware: readonly string[],
  one: fc.Arbitrary<Step>,
  last: fc.Arbitrary<Step>,
): fc.Arbitrary<FrameworkProgram> {
  const around = fc.uniqueArray(fc.constantFrom(...middleware), { maxLength: 2 });
  return fc.record({
    place: fc.constantFrom(...places),
    outer: around,
    inner: around,
    steps: fc.tuple(fc.array(one, { maxLength: 4 }), last).map(([before, end]) => [...before, end]),
  });
}

export const EXPRESS = program(
  ["app", "prefix", "router", "sub-app", "twice", "route"],
  ["compression", "on-headers", "cors", "header", "catches"],
  fc.oneof(
    step("status", status),
    { weight: 3, arbitrary: step("set", field, value) },
    step("append", field, value),
    step("type", kind),
    step("vary", fc.constantFrom("Accept", "Accept-Language", "*")),
    step("cookie", fc.constant("name"), fc.constant("value")),
    step("links", fc.constant({ next: "/2" })),
    step("location", fc.constantFrom("/there", "back")),
    step("attachment", fc.constant("a.txt")),
    step("removeHeader", field),
    wait,
    RAW,
  ),
  fc.oneof(
    { weight: 4, arbitrary: step("send", content) },
    { weight: 2, arbitrary: step("json", content) },
    step("jsonp", content),
    step("sendStatus", status),
    step("redirect", fc.constantFrom("/there", "http://other.test/")),
    step("format"),
    { weight: 2, arbitrary: step("sendFile") },
    step("download"),
    { weight: 3, arbitrary: step("pipe", stream) },
    step("pipeline", stream),
    step("end", fc.constantFrom<unknown>("end", undefined)),
    step("throw"),
    step("next"),
    step("next error"),
    step("next route"),
  ),
);

/** Fields that a hook gave to the reply: what is written past it does not get them, a hit does. */
const PENDING = ["header", "helmet", "cookie"];

const isRaw = ([name]: Step): boolean => name.startsWith("raw.") || name === "hijack";

export const FASTIFY = program(
  ["app", "scope", "twice"],
  [
    "header",
    "on send appends",
    "on send replaces",
    "on send fails",
    "serializes",
    "compress",
    "helmet",
    "cookie",
  ],
  fc.oneof(
    step("code", status),
    { weight: 3, arbitrary: step("header", field, value) },
    step("removeHeader", field),
    step("type", kind),
    step("hijack"),
    step("trailer"),
    step("setCookie"),
    wait,
    RAW,
  ),
  fc.oneof(
    { weight: 4, arbitrary: step("send", content) },
    { weight: 2, arbitrary: step("return", content) },
    { weight: 3, arbitrary: step("send stream", stream) },
    step("return stream", stream),
    step("send web stream", stream),
    step("send file"),
    step("redirect"),
    step("callNotFound"),
    step("throw"),
    step("send error"),
    step("return error"),
    step("raw.end", fc.constantFrom("raw end", "")),
  ),
).map((one) =>
  one.steps.some(isRaw) ? { ...one, outer: one.outer.filter((name) => !PENDING.includes(name)) } : one,
);

export const KOA = program(
  ["app", "composed", "twice"],
  ["compress", "session", "header after", "body after", "status after", "throws after", "catches"],
  fc.oneof(
    step("status", status),
    { weight: 3, arbitrary: step("set", field, value) },
    step("append", field, value),
    step("remove", field),
    step("type", kind),
    step("length", fc.constantFrom(3, 0)),
    step("vary", fc.constantFrom("Accept", "*")),
    step("etag"),
    step("lastModified"),
    step("attachment"),
    step("cookie"),
    step("flushHeaders"),
    step("respond"),
    wait,
    RAW,
  ),
  fc.oneof(
    { weight: 4, arbitrary: step("body", content) },
    { weight: 3, arbitrary: step("stream", stream) },
    step("web stream", stream),
    step("file"),
    step("blob"),
    step("redirect"),
    step("throw"),
    step("throw status", fc.constantFrom(400, 404, 500, 503)),
    step("nothing"),
  ),
);

/** Runs the steps one after the other; each returns what ends the program, if anything. */
export async function runSteps(
  steps: readonly Step[],
  response: ServerResponse,
  operations: Readonly<Record<string, (...given: never[]) => unknown>>,
): Promise<unknown> {
  let returned: unknown;
  for (const [name, ...given] of steps) {
    if (name === "wait") await nextTurn();
    else if (name.startsWith("raw.")) performRaw(response, name, given);
    else returned = (await (operations[name] as (...given: unknown[]) => unknown)(...given)) ?? returned;
  }
  return returned;
}
