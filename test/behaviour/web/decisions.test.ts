// Why a request bypassed the cache, and why a response was not stored: onDecision and DEBUG=xcache:http.
import { afterEach, expect, test, vi } from "vitest";
import type { HttpCacheDecision } from "../../../src/web/node.ts";
import { ADAPTERS, type Ask, type Options, type Script, subject } from "./subject.ts";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** What was decided about two requests, as `outcome reason`. */
async function decided(script: Script, options: Options = {}, ask: Ask = {}): Promise<string[]> {
  const decisions: string[] = [];
  const onDecision = ({ outcome, reason }: HttpCacheDecision) => decisions.push(`${outcome} ${reason}`);
  const open = await subject("node", script, { ...options, onDecision });
  for (let visit = 0; visit < 2; visit++) await open.ask("/page?token=secret", ask).catch(() => {});
  return decisions;
}

const answering =
  (headers: Record<string, string | readonly string[]>, status = 200): Script =>
  () => ({ status, headers, body: "the page" });

const twice = (...decisions: string[]): string[] => [...decisions, ...decisions];

test.each<[string, readonly string[], Script, Options?, Ask?]>([
  ["a page", ["miss uri-miss", "stored ttl=60", "hit fresh"], answering({})],
  ["a variant", ["miss uri-miss", "stored ttl=60", "hit fresh"], answering({ vary: "accept" })],
  ["a POST", twice("bypassed method"), answering({}), {}, { method: "POST" }],
  ["a cookie", twice("bypassed cookie"), answering({}), {}, { headers: { cookie: "a=secret" } }],
  ["an API key", twice("bypassed x-api-key"), answering({}), {}, { headers: { "x-api-key": "secret" } }],
  [
    "no-store of the client",
    twice("bypassed no-store"),
    answering({}),
    {},
    { headers: { "cache-control": "no-store" } },
  ],
  ["an excluded path", twice("bypassed excluded"), answering({}), { excludePaths: ["/page"] }],
  ["skip", twice("bypassed skip"), answering({}), { skip: () => true }],
  ["a key that cannot be built", twice("bypassed key"), answering({}), { keyBuilder: () => "" }],
  ["Set-Cookie", twice("miss uri-miss", "not-stored set-cookie"), answering({ "set-cookie": "a=secret" })],
  ["private", twice("miss uri-miss", "not-stored private"), answering({ "cache-control": "private" })],
  ["no-store", twice("miss uri-miss", "not-stored no-store"), answering({ "cache-control": "no-store" })],
  ["Vary: *", twice("miss uri-miss", "not-stored vary"), answering({ vary: "*" })],
  ["a status", twice("miss uri-miss", "not-stored status"), answering({}, 404)],
  ["no lifetime", twice("miss uri-miss", "not-stored no-lifetime"), answering({}), { ttl: 0 }],
  ["a large body", twice("miss uri-miss", "not-stored size"), answering({}), { maxBodyBytes: 3 }],
  [
    "shouldStore",
    twice("miss uri-miss", "not-stored should-store"),
    answering({}),
    { shouldStore: () => false },
  ],
  [
    "a body that is cut off",
    twice("miss uri-miss", "not-stored truncated"),
    answering({ "content-length": "9" }),
  ],
  ["HEAD", twice("miss uri-miss"), answering({}), {}, { method: "HEAD" }],
])("%s is reported with its reason", async (_, decisions, script, options, ask) => {
  expect(await decided(script, options, ask)).toEqual(decisions);
});

test.each(ADAPTERS)(
  "on %s every request that is not answered from the cache is a miss, waiting or not",
  async (adapter) => {
    const misses: string[] = [];
    let release: (() => void)[] = [];
    const script: Script = async () => {
      await new Promise<void>((resume) => release.push(resume));
      return { headers: { "cache-control": "private" } };
    };
    const { ask, calls, engine } = await subject(adapter, script, { onMiss: ({ key }) => misses.push(key) });
    for (const requests of [1, 3]) {
      const answers = Array.from({ length: requests }, () => ask("/"));
      // The second round does not wait for a response that will not be stored.
      while (release.length < requests) await new Promise((turn) => setImmediate(turn));
      for (const resume of release) resume();
      release = [];
      await Promise.all(answers);
    }
    expect([calls.length, misses.length, engine.counts.misses]).toEqual([4, 4, 4]);
  },
);

test("stale responses say why they were served", async () => {
  const decisions: string[] = [];
  const { ask, clock } = await subject(
    "node",
    ({ call }) => (call === 1 ? { body: "the page" } : { status: 503 }),
    { staleIfError: 600, onDecision: ({ outcome, reason }) => decisions.push(`${outcome} ${reason}`) },
  );
  await ask("/");
  await clock.advance(61_000);
  expect((await ask("/")).body).toBe("the page");
  expect(decisions).toEqual([
    "miss uri-miss",
    "stored ttl=60",
    "miss stale",
    "not-stored status",
    "hit stale-if-error",
  ]);
});

test.each(ADAPTERS)("on %s DEBUG=xcache:http writes each decision, and no secret", async (adapter) => {
  vi.stubEnv("DEBUG", "other,xcache:http");
  const lines: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const { ask } = await subject(adapter, answering({ "set-cookie": "session=secret" }));
  await ask("/page?token=secret");
  await ask("/page", { headers: { cookie: "session=secret" } });
  await ask("/page", { headers: { "x-auth-token": "secret", authorization: "Bearer secret" } });
  expect(lines.join("")).toMatch(
    /^xcache:http miss GET "\/page\?\.\.\.": nothing is stored for the URL\nxcache:http not-stored GET "\/page\?\.\.\.": the response has Set-Cookie\nxcache:http bypassed GET "\/page": the request has "cookie"\nxcache:http bypassed GET "\/page": the request has "(?:authorization|x-auth-token)"\n$/,
  );
});

test("a listener that fails is reported, and the response is not affected", async () => {
  const onDecision = () => {
    throw new Error("the listener failed");
  };
  const { ask, errors } = await subject("node", answering({}), { onDecision });
  expect((await ask("/")).body).toBe("the page");
  expect(errors.map(({ message }) => message)).toEqual(["the listener failed", "the listener failed"]);
});
