// The fetch adapter with requests and responses that are not plain ones.
import { NextRequest, NextResponse } from "next/server.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { httpCache } from "../../src/web/fetch.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";

const URL_OF_PAGE = "http://site.test/base/page?id=1";

/** Requests whose fields the handler sees as they are, and others of which some are hidden from it. */
const FIELDS: readonly Record<string, string>[] = [
  {},
  { "if-none-match": '"other"' },
  { "if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT" },
  { "x-original-url": "/evil" },
];

/** What a server may do with the global class before the first request. */
const GLOBALS: readonly (readonly [string, () => unknown])[] = [
  ["the global Request", () => Request],
  ["a global Request replaced since", () => class Request extends globalThis.Request {}],
  ["a global Request replaced since by a class of another name", () => class extends globalThis.Request {}],
];

test("a server that makes up the host of its URLs keeps the hosts of its clients apart", async () => {
  const { cache } = memoryCache();
  const handler = httpCache({ cache })((request: Request) => new Response(request.headers.get("host")));
  const visit = async (host: string) => {
    const response = await handler(new Request("http://localhost:3000/", { headers: { host } }));
    return [await response.text(), response.headers.get("cache-status")];
  };
  for (const host of ["ann.test", "bob.test"]) {
    expect(await visit(host)).toEqual([host, "xcache; fwd=uri-miss; stored"]);
    expect(await visit(host)).toEqual([host, "xcache; hit; ttl=60"]);
  }
});

describe.each(GLOBALS)("with %s, the request of a handler", (_, requestClass) => {
  afterEach(() => void vi.unstubAllGlobals());

  test.each(FIELDS)("is a NextRequest if the framework's is one, with %j", async (headers) => {
    vi.stubGlobal("Request", requestClass());
    const { cache } = memoryCache();
    const handler = httpCache({ cache })((request: Request) => {
      const { nextUrl, cookies, method } = request as NextRequest;
      const isNext = request instanceof NextRequest;
      const id = nextUrl.searchParams.get("id");
      return NextResponse.json([isNext, nextUrl.basePath, id, cookies.getAll(), method]);
    });
    const request = new NextRequest(URL_OF_PAGE, { headers, nextConfig: { basePath: "/base" } });
    const response = await handler(request);
    expect([response.status, await response.json()]).toEqual([200, [true, "/base", "1", [], "GET"]]);
  });

  test.each(FIELDS)("has what a router added to it, with %j", async (headers) => {
    const { cache } = memoryCache();
    const handler = httpCache({ cache })((request: Request) => {
      const hidden = ["if-none-match", "if-modified-since", "x-original-url"];
      expect(hidden.filter((name) => request.headers.has(name))).toEqual([]);
      return Response.json((request as { params?: unknown }).params);
    });
    const request = Object.assign(new Request(URL_OF_PAGE, { headers }), { params: { id: "1" } });
    expect(await (await handler(request)).json()).toEqual({ id: "1" });
  });

  test("does not show a hidden cookie as its framework parsed it", async () => {
    vi.stubGlobal("Request", requestClass());
    const { cache } = memoryCache();
    const handler = httpCache({ cache, shared: true, strict: true })((request: Request) => {
      const { nextUrl, cookies } = request as NextRequest;
      return Response.json([nextUrl.searchParams.get("id"), cookies.get("session") ?? null]);
    });
    const request = new NextRequest(URL_OF_PAGE, { headers: { cookie: "session=ann" } });
    expect(await (await handler(request)).json()).toEqual(["1", null]);
  });
});

/** What reading a response gives, or that it cannot be read. */
async function read(responding: () => Response | Promise<Response>): Promise<unknown> {
  try {
    const response = await responding();
    const { status, type, headers } = response;
    const fields = [...headers].filter(([name]) => !ADDED.has(name));
    return [status, type === "error" ? type : "", fields, await response.text()];
  } catch (error) {
    return (error as Error).name;
  }
}

/** Fields that belong to the cache. */
const ADDED = new Set(["age", "cache-control", "cache-status", "content-length", "date", "etag"]);

const RESPONSES: Record<string, () => Response | Promise<Response>> = {
  "a redirect": () => Response.redirect("http://site.test/there", 302),
  "a network error": () => Response.error(),
  "an original whose clone was read": async () => {
    const response = new Response("page");
    await response.clone().text();
    return response;
  },
  "a clone": () => new Response("page").clone(),
  "one that was read": async () => {
    const response = new Response("page");
    await response.text();
    return response;
  },
  "one that is being read": () => {
    const response = new Response("page");
    response.body!.getReader();
    return response;
  },
  "one of Next": () => NextResponse.json({ a: 1 }, { status: 201 }),
  "a rewrite of Next": () => NextResponse.rewrite("http://site.test/there"),
  "a redirect of Next": () => NextResponse.redirect("http://site.test/there"),
  "one with a cookie of Next": () => {
    const response = NextResponse.json({ a: 1 });
    response.cookies.set("session", "ann");
    return response;
  },
  "one without content": () => new Response(null, { status: 204 }),
  "a form": () => {
    const form = new FormData();
    form.set("a", "1");
    const { headers } = new Response(form);
    return new Response("form", { headers: { "x-is-form": String(headers.has("content-type")) } });
  },
  nothing: () => undefined as unknown as Response,
  "something that is not a response": () => ({ status: 200, body: "page" }) as unknown as Response,
};

describe.each(Object.entries(RESPONSES))("%s", (_, make) => {
  test("is the same on every visit as without the cache", async () => {
    const { cache } = memoryCache();
    const handler = httpCache({ cache, varyCookie: false })(make);
    const expected = await read(make);
    for (let visit = 0; visit < 3; visit++)
      expect(await read(() => handler(new Request(URL_OF_PAGE)))).toEqual(expected);
  });
});
