// Answers the requests of the dashboard: who may ask, from where, and what comes back.
import { BackendError, XCacheError } from "../core/errors.ts";
import { requireTags } from "../core/keys.ts";
import { audited, type Changed, READ_ONLY } from "./audit.ts";
import type { CheckedOptions } from "./checked-options.ts";
import { type Allowed, DashboardData, type DashboardExtras } from "./data.ts";
import type { DashboardAction, Permission } from "./options.ts";
import { BadRequest, keyIn, messageOf } from "./request-body.ts";

/** The longest body of a request: a key of 64 KiB in JSON. */
const LONGEST_BODY = 512 * 1024;

const PLAIN_HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** Lines are to arrive one by one: no proxy shall compress them, and nginx not collect them. */
const STREAM_HEADERS = {
  ...PLAIN_HEADERS,
  "cache-control": "no-store, no-transform",
  "content-type": "application/x-ndjson; charset=utf-8",
  "x-accel-buffering": "no",
} as const;

function json(value: unknown, status = 200): Response {
  const headers = { ...PLAIN_HEADERS, "content-type": "application/json; charset=utf-8" };
  return new Response(JSON.stringify(value), { status, headers });
}

const FOREIGN =
  "requests from other origins are refused; behind a proxy, it must pass on Host or send X-Forwarded-Host";

const refusal = (status: number, message: string): Response => json({ error: message }, status);

/** The part of the data that a path names; undefined: the page. */
const partAt = (pathname: string): string | undefined => /\/api\/([a-z]+)$/.exec(pathname)?.[1];

/** Answers a method that the path does not have. */
export function otherMethod(pathname: string): Response {
  const isPage = partAt(pathname) === undefined;
  const answer = refusal(405, isPage ? "use GET" : "use POST");
  answer.headers.set("allow", isPage ? "GET, HEAD" : "POST");
  return answer;
}

interface Visitor extends Allowed {
  readonly user: string | undefined;
}

export class DashboardHandler {
  readonly #options: CheckedOptions;
  readonly #data: DashboardData;

  constructor(options: CheckedOptions, extras: DashboardExtras = {}) {
    this.#options = options;
    this.#data = new DashboardData(options, extras);
  }

  /** `native`: the framework's request. Never rejects. */
  async handle(request: Request, native: unknown = request): Promise<Response> {
    try {
      return await this.#answer(request, native);
    } catch (error) {
      const isOurs = error instanceof BadRequest || error instanceof XCacheError;
      return refusal(error instanceof BackendError ? 503 : isOurs ? 400 : 500, messageOf(error));
    }
  }

  async #answer(request: Request, native: unknown): Promise<Response> {
    const url = new URL(request.url);
    const host = (request.headers.get("host") ?? url.host).toLowerCase();
    const { hosts } = this.#options;
    // A name that an attacker has made point here (DNS rebinding).
    if (hosts !== undefined && !hosts.has(host)) return refusal(421, "this host name is not served");
    if (isForeign(request, host)) return refusal(403, FOREIGN);
    const name = partAt(url.pathname);
    const isPage = name === undefined;
    const visitor = await this.#visitor(request, isPage, native);
    if (visitor === undefined) return refusal(401, "not allowed");
    return isPage ? this.#page(request, url) : this.#call(name, request, visitor);
  }

  async #visitor(request: Request, isPage: boolean, native: unknown): Promise<Visitor | undefined> {
    const answer: unknown = await this.#options.authorize(request, { isPage, native });
    if (answer !== true && (typeof answer !== "object" || answer === null)) return undefined;
    const {
      writes = true,
      values = true,
      user,
    } = answer === true ? ({} as Permission) : (answer as Permission);
    return {
      writes: this.#options.writes && writes === true,
      values: this.#options.values && values === true,
      user,
    };
  }

  /** Every address in the page is relative, so that it works below any path. */
  async #page(request: Request, { pathname, search }: URL): Promise<Response> {
    if (request.method !== "GET" && request.method !== "HEAD") return otherMethod(pathname);
    if (!pathname.endsWith("/")) {
      const last = pathname.slice(pathname.lastIndexOf("/") + 1);
      return new Response(null, {
        status: 308,
        // Without `./`, a name such as `https:evil.example` would be another host.
        headers: { ...PLAIN_HEADERS, location: `./${last}/${search}` },
      });
    }
    const { html, policy } = await loadPage();
    return new Response(request.method === "HEAD" ? null : html, {
      headers: {
        ...PLAIN_HEADERS,
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": policy,
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
      },
    });
  }

  async #call(name: string, request: Request, visitor: Visitor): Promise<Response> {
    if (request.method !== "POST") return otherMethod(new URL(request.url).pathname);
    if (!/^application\/json\b/.test(request.headers.get("content-type") ?? "")) {
      return refusal(415, "the body must be application/json");
    }
    const body = await bodyOf(request);
    const data = this.#data;
    const allowed: Allowed = { writes: visitor.writes, values: visitor.values };
    switch (name) {
      case "overview":
        return json(await data.overview(body, allowed));
      case "live":
        return stream(request, (signal) => data.live(body, allowed, signal));
      case "keys":
        return stream(request, (signal) => data.keys(body, signal));
      case "entry":
        return json(await data.entry(body, allowed));
      case "download":
        return allowed.values ? this.#download(body) : refusal(403, "values are hidden");
      case "tags":
        return json(await data.tags(body, request.signal));
      case "settings":
        return json(data.settings());
      case "doctor":
        return json(await data.doctor());
      case "delete":
        return this.#act({ action: "delete", key: keyIn(body) }, visitor, async () => ({
          deleted: await this.#options.inside.deleteUnread([keyIn(body)]),
        }));
      case "invalidate":
        return this.#invalidate(body, visitor);
      default:
        return refusal(404, "no such part of the dashboard");
    }
  }

  #invalidate(body: Record<string, unknown>, visitor: Visitor): Promise<Response> {
    if (typeof body.tag !== "string") throw new BadRequest("tag must be a string");
    const [tag] = requireTags(body.tag) as [string];
    return this.#act({ action: "invalidate", tag }, visitor, async () => {
      await this.#options.cache.invalidateTags(tag);
      return { invalidated: tag };
    });
  }

  async #act(
    what: Changed,
    { writes: allowed, user }: Visitor,
    work: () => Promise<{ readonly deleted?: number; readonly invalidated?: string }>,
  ): Promise<Response> {
    const action: DashboardAction = { ...what, allowed, ...(user !== undefined && { user }) };
    const done = await audited(this.#options, action, work);
    if (done === undefined) return refusal(403, READ_ONLY);
    this.#data.changed(what);
    return json(done);
  }

  async #download(body: Record<string, unknown>): Promise<Response> {
    const whole = await this.#data.download(body);
    if (whole === undefined) return refusal(404, "there is no such entry");
    return new Response(whole as Uint8Array<ArrayBuffer> | string, {
      headers: {
        ...PLAIN_HEADERS,
        "content-type": "application/octet-stream",
        "content-disposition": 'attachment; filename="value"',
      },
    });
  }
}

async function bodyOf(request: Request): Promise<Record<string, unknown>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of arriving(request)) {
    length += part.length;
    if (length > LONGEST_BODY) throw new BadRequest("the body is too long");
    parts.push(part);
  }
  try {
    const value: unknown = length === 0 ? {} : JSON.parse(Buffer.concat(parts).toString("utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Said below.
  }
  throw new BadRequest("the body must be a JSON object");
}

/** A sender that leaves is no failure of the dashboard. */
async function* arriving({ body }: Request): AsyncIterable<Uint8Array> {
  try {
    yield* body ?? [];
  } catch {
    throw new BadRequest("the body did not arrive whole");
  }
}

/** One JSON object a line; ends when the reader goes away. */
function stream(request: Request, work: (signal: AbortSignal) => AsyncIterable<unknown>): Response {
  const gone = new AbortController();
  const signal = AbortSignal.any([gone.signal, request.signal]);
  const items = work(signal)[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const line = (item: unknown): Uint8Array => encoder.encode(`${JSON.stringify(item)}\n`);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await items.next();
        if (next.done) controller.close();
        else controller.enqueue(line(next.value));
      } catch (error) {
        // What is cut short because its reader has left is no failure.
        if (!signal.aborted) controller.enqueue(line({ failed: messageOf(error) }));
        controller.close();
      }
    },
    cancel() {
      gone.abort();
      void items.return?.();
    },
  });
  return new Response(body, { headers: STREAM_HEADERS });
}

/**
 * What scripts/build/page.mjs puts together. Two folders up is the package, from the sources as from what is published. A plain
 * path, so that bundlers take the page along.
 */
const importPage = async () => (await import("../../dist/dashboard/page.js")).page;

let loading: ReturnType<typeof importPage> | undefined;

export function loadPage(): ReturnType<typeof importPage> {
  loading ??= importPage();
  return loading;
}

/**
 * A browser says where a request comes from; one without it is no browser's, or a navigation. `host`: the request's own.
 *
 * Behind a proxy that replaces Host, the browser's word for it is Sec-Fetch-Site, which no script can set, and the proxy's
 * X-Forwarded-Host: a script of another origin cannot send that header without a preflight, which is never answered.
 */
function isForeign(request: Request, host: string): boolean {
  const { headers } = request;
  const site = headers.get("sec-fetch-site");
  if (request.method !== "GET" && site !== null && site !== "same-origin" && site !== "none") return true;
  const origin = headers.get("origin");
  if (origin === null || site === "same-origin") return false;
  const [forwarded = ""] = (headers.get("x-forwarded-host") ?? "").split(",");
  const name = origin.replace(/^https?:\/\//, "").toLowerCase();
  return name !== host && name !== forwarded.trim().toLowerCase();
}
