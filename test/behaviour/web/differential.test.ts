// Random handlers and requests: every response is one the bare handler could have sent within the freshness rules.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ADAPTERS, type Adapter, type Answer, type Got, type Seen, subject } from "./subject.ts";

/** How the handler of one path behaves, and for how many seconds its answers may be used. */
interface Page {
  readonly headers: Record<string, string>;
  readonly status: number;
  readonly seconds: number;
  readonly varies: boolean;
  readonly validates: boolean;
  /** Stored, and asked for again before every use. */
  readonly isRevalidated: boolean;
}

const TTL = 10;

const page = fc
  .record({
    lifetime: fc.constantFrom<[Record<string, string>, number]>(
      [{}, TTL],
      [{ "cache-control": "max-age=3" }, 3],
      [{ "cache-control": "max-age=3, s-maxage=20" }, 20],
      [{ "cache-control": "max-age=3, stale-while-revalidate=4" }, 7],
      [{ "cache-control": "max-age=20", "cdn-cache-control": "max-age=2" }, 2],
      [{ "cache-control": "no-cache" }, 0],
      [{ "cache-control": "private, max-age=9" }, 0],
      [{ "cache-control": 'max-age=9, x="' }, 0],
      [{ "cache-control": "NO-STORE" }, 0],
      [{ "set-cookie": "a=b" }, 0],
      [{ vary: "*" }, 0],
    ),
    status: fc.constantFrom(200, 200, 200, 200, 200, 404, 500),
    varies: fc.boolean(),
    validates: fc.constantFrom(false, false, true),
  })
  .map(({ lifetime: [headers, seconds], status, varies, validates }): Page => {
    const vary = varies && headers.vary === undefined ? { vary: "Accept" } : {};
    return {
      headers: { ...headers, ...vary },
      status,
      seconds: status === 200 ? seconds : 0,
      varies,
      validates,
      isRevalidated: validates || headers["cache-control"] === "no-cache",
    };
  });

interface Asker {
  readonly accept: string;
  readonly cookie: string;
}

type Step =
  | {
      readonly kind: "ask";
      readonly path: number;
      readonly accept: string;
      readonly cookie: string;
      readonly isHeld: boolean;
      readonly method: string;
      /** Others who ask the same at the same time. */
      readonly others: readonly Asker[];
    }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "invalidate"; readonly path: number };

const asker = {
  accept: fc.constantFrom("", "a", "b"),
  cookie: fc.constantFrom("", "", "", "", "ann", "bob"),
};

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      path: fc.nat(2),
      ...asker,
      others: fc.oneof(
        { weight: 4, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(fc.record(asker), { minLength: 1, maxLength: 3 }) },
      ),
      isHeld: fc.boolean(),
      method: fc.constantFrom("GET", "GET", "GET", "GET", "GET", "HEAD", "POST"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(6_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("invalidate" as const), path: fc.nat(2) }) },
);

/** What the handler writes into its body. */
interface Written {
  readonly path: number;
  readonly accept: string;
  readonly cookie: string;
  readonly call: number;
  readonly at: number;
}

async function run(adapter: Adapter, pages: readonly Page[], steps: readonly Step[]): Promise<void> {
  const answer = ({ url, headers, call }: Seen): Answer => {
    const path = Number(url.slice(2));
    const { status, headers: fields, validates } = pages[path]!;
    const { accept = "", cookie = "" } = headers;
    const etag = `"${path} ${accept} ${cookie}"`;
    const own = {
      ...fields,
      "x-call": `${call}`,
      "content-type": "application/json",
      "cache-tag": `page:${path}`,
      ...(validates ? { etag } : {}),
    };
    if (validates && status === 200 && headers["if-none-match"] === etag)
      return { status: 304, headers: own };
    return { status, headers: own, body: JSON.stringify({ path, accept, cookie, call, at: clock.now() }) };
  };
  const { ask, clock, calls, cache } = await subject(adapter, answer, { ttl: TTL, varyCookie: false });
  /** Nothing older than this call may be seen any more. */
  const oldest = [0, 0, 0];
  const held = new Map<string, string>();
  const headersFor = ({ accept, cookie }: Asker, tag?: string): Record<string, string> => ({
    ...(accept === "" ? {} : { accept }),
    ...(cookie === "" ? {} : { cookie }),
    ...(tag === undefined ? {} : { "if-none-match": tag }),
  });
  for (const current of steps) {
    if (current.kind === "wait") await clock.advance(current.ms);
    else if (current.kind === "invalidate") {
      await cache.invalidateTags(`page:${current.path}`);
      oldest[current.path] = calls.length;
    } else {
      const { path, method, isHeld } = current;
      const tag = isHeld ? held.get(`${path}`) : undefined;
      const before = calls.length;
      const others = method === "POST" ? [] : current.others;
      const [got, ...rest] = await Promise.all([
        ask(`/p${path}`, { method, headers: headersFor(current, tag) }),
        ...others.map((other) => ask(`/p${path}`, { headers: headersFor(other) })),
      ]);
      if (method === "POST" && got!.status < 400) oldest[path] = calls.length;
      const moment = { before, now: clock.now(), oldest: oldest[path]!, isShared: others.length > 0 };
      check(got!, current, pages[path]!, { ...moment, tag });
      for (const [at, answer] of rest.entries()) {
        check(answer, { ...current, ...others[at]!, method: "GET" }, pages[path]!, {
          ...moment,
          tag: undefined,
        });
      }
      if (pages[path]!.seconds === 0 && !pages[path]!.isRevalidated) expectOwn([got!, ...rest]);
      if (got!.headers.etag !== undefined) held.set(`${path}`, got!.headers.etag);
    }
  }
}

interface Moment {
  readonly before: number;
  readonly now: number;
  readonly oldest: number;
  readonly tag: string | undefined;
  /** Somebody else asked at the same time: what is new may have been made for him. */
  readonly isShared: boolean;
}

/** What the cache and the server add to what the handler said. */
const ADDED = new Set([
  ...["age", "cache-control", "cache-status", "connection", "content-length", "content-type", "date", "etag"],
  ...["keep-alive", "transfer-encoding", "x-powered-by", "x-call", "cache-tag"],
]);

/** What may not be stored is made for each. */
function expectOwn(answers: readonly Got[]): void {
  const bodies = answers.map(({ body }) => body).filter((body) => body !== "");
  expect(new Set(bodies).size).toBe(bodies.length);
}

function check(got: Got, asked: Extract<Step, { kind: "ask" }>, page: Page, moment: Moment): void {
  if (got.status === 304) {
    expect(moment.tag).toBeDefined();
    expect(got.body).toBe("");
    return;
  }
  expect(got.status).toBe(page.status);
  if (asked.method !== "GET") return;
  const written = JSON.parse(got.body) as Written;
  const isNew = written.call > moment.before;
  expect([written.path, written.cookie]).toEqual([asked.path, asked.cookie]);
  for (const name of Object.keys(got.headers)) {
    expect(ADDED.has(name) || name in page.headers, `the field ${name}`).toBe(true);
  }
  // The head and the body are of the same answer, unless the handler has said that an old body is still good.
  if (!page.validates) expect(got.headers["x-call"]).toBe(`${written.call}`);
  for (const [name, value] of Object.entries(page.headers)) {
    const sent = [got.headers[name]].flat().join(", ");
    expect(sent.toLowerCase()).toBe(value.toLowerCase());
  }
  if (page.varies || (isNew && !moment.isShared)) expect(written.accept).toBe(asked.accept);
  expect(got.headers["set-cookie"] !== undefined).toBe(page.headers["set-cookie"] !== undefined);
  if (isNew) return;
  expect(asked.cookie).toBe("");
  // A handler that says itself that nothing has changed may keep an old body alive.
  if (page.validates) return;
  expect(written.call).toBeGreaterThan(moment.oldest);
  expect(moment.now - written.at).toBeLessThan(page.seconds * 1_000);
}

/** `XCACHE_HTTP_SEED=<seed> npx vitest run test/web/differential.test.ts` draws the same again; a failure says its seed. */
const seed = Number(process.env.XCACHE_HTTP_SEED ?? Math.floor(Math.random() * 2 ** 31));

describe.each(ADAPTERS)("on %s", (adapter) => {
  test("a client gets only responses that the handler sent to it or to everyone", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(page, { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 20, maxLength: 40 }),
        (pages, steps) => run(adapter, pages, steps),
      ),
      { numRuns: 15, seed },
    );
  });
});
