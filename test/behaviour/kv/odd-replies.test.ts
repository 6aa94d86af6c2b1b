// A server that answers with replies of the wrong kind: every call ends with a typed error, and the next connection works.
import "../../../src/backends/kv/client.ts";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { XCacheError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { bulk, FakeServer, greet, type Script } from "../../support/kv/fake-server.ts";
import { anything, encode } from "../../support/kv/resp-text.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { until } from "../../support/until.ts";

const TIMEOUT_S = 0.3;

/** An empty server. */
const empty: Script = (command, client) => {
  const [name, , ...rest] = command;
  switch (name) {
    case "GET":
    case "GETDEL":
      return "_\r\n";
    case "MGET":
      return `*${rest.length + 1}\r\n${"_\r\n".repeat(rest.length + 1)}`;
    case "SET":
      return "+OK\r\n";
    case "DEL":
    case "TOUCH":
    case "DBSIZE":
    case "STRLEN":
      return ":0\r\n";
    case "EVALSHA":
    case "EVAL":
      return ":1\r\n";
    case "SCAN":
      return `*2\r\n${bulk("0")}*1\r\n${bulk(`${PREFIX}:somebody's`)}`;
    case "GETRANGE":
      return bulk("");
    default:
      return greet(command, client);
  }
};

const PREFIX = "odd";

/** Replies that the generator does not produce. */
const BROKEN = [
  "@what is this\r\n",
  "*2\r\n>1\r\n+inside\r\n+rest\r\n",
  ">2\r\n+invalidate\r\n:5\r\n",
  ">2\r\n+invalidate\r\n*2\r\n_\r\n:5\r\n",
  ">1\r\n+invalidate\r\n",
  "$3\r\nlonger\r\n",
  "*1000000000000\r\n",
  "HTTP/1.1 400 Bad Request\r\n\r\n",
];

const SAMPLES = 400;

/** Odd replies in the order of their seed. */
function oddReplies(seed: number): () => Buffer {
  const sent = fc.sample(anything, { seed, numRuns: SAMPLES }).map(encode);
  const all = sent.flatMap((each, at) =>
    at % 20 === 0 ? [Buffer.from(BROKEN[(seed + at / 20) % BROKEN.length]!), each] : [each],
  );
  let next = 0;
  return () => all[next++ % all.length]!;
}

const servers: FakeServer[] = [];
const caches: XCache[] = [];
afterEach(async () => {
  for (const cache of caches.splice(0)) await cache.disconnect();
  for (const server of servers.splice(0)) await server.stop();
});

async function serving(script: Script): Promise<FakeServer> {
  const server = await FakeServer.start(script);
  servers.push(server);
  return server;
}

function open(
  { port }: FakeServer,
  nearCache = false,
  kvUrl = `redis://127.0.0.1:${port}`,
): { cache: XCache; errors: unknown[] } {
  const errors: unknown[] = [];
  const cache = new XCache({
    kvUrl,
    keyPrefix: PREFIX,
    operationTimeout: TIMEOUT_S,
    connectTimeout: TIMEOUT_S,
    circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 },
    nearCache,
  });
  cache.on("error", ({ error }) => errors.push(error));
  caches.push(cache);
  return { cache, errors };
}

async function listed(cache: XCache): Promise<number> {
  let count = 0;
  for await (const _ of cache.keys("*")) count++;
  return count;
}

const calls = (cache: XCache): Record<string, () => Promise<unknown>> => ({
  get: () => cache.get("k"),
  getMany: () => cache.getMany(["k", "l", "m"]),
  together: () => Promise.all([cache.get("a"), cache.get("b"), cache.get("c")]),
  exists: () => cache.exists("k"),
  ttl: () => cache.ttl("k"),
  set: () => cache.set("k", 1, { tags: ["t"] }),
  setMany: () => cache.setMany({ k: 1, l: 2 }),
  delete: () => cache.delete(["k", "l"]),
  invalidateTags: () => cache.invalidateTags(["t"]),
  invalidatePattern: () => cache.invalidatePattern("k*"),
  getOrSet: () => cache.getOrSet("k", () => "loaded", { tags: ["t"] }),
  keys: () => listed(cache),
  clear: () => cache.clear(),
  getStats: () => cache.getStats(),
  exactStats: () => cache.getStats({ exact: true }),
  health: () => cache.health(),
  healthCheck: () => cache.healthCheck(),
  detailedHealthCheck: () => cache.detailedHealthCheck(),
});

function expectTyped(error: unknown, during: string): void {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    expect(cause, during).not.toBeInstanceOf(TypeError);
    expect(cause, during).not.toBeInstanceOf(RangeError);
  }
  expect(error, during).toBeInstanceOf(XCacheError);
}

/** Every call settles in time with a result or a typed error. */
async function survives(cache: XCache, errors: readonly unknown[], what: string): Promise<void> {
  const settled = await Promise.all(
    Object.entries(calls(cache)).map(async ([name, call]) => ({ name, ...(await timed(call())) })),
  );
  for (const { name, ms, outcome } of settled) {
    // Several steps, each with a deadline of its own.
    expect(ms, `${what}: ${name}`).toBeLessThan(soon(4_000));
    if (outcome instanceof Error) expectTyped(outcome, `${what}: ${name}`);
    if (name === "getOrSet") expect(outcome, what).toBe("loaded");
  }
  for (const error of errors) expectTyped(error, `${what}: reported`);
}

/** Once the server answers correctly, everything works again. */
async function recovers(cache: XCache): Promise<void> {
  await until(() => cache.health(), { what: "the next connection works" });
  await cache.set("k", 1);
  expect(await cache.get("k")).toBeUndefined();
}

const SEEDS = [11, 12, 13, 14, 15, 16];

describe("odd replies", () => {
  it.each(SEEDS)("to everything (seed %i)", async (seed) => {
    const odd = oddReplies(seed);
    const server = await serving((_, client) => void client.socket.write(odd()));
    const { cache, errors } = open(server, seed % 2 === 0);
    await survives(cache, errors, `seed ${seed}`);
    server.script = empty;
    await recovers(cache);
  });

  it.each(SEEDS)("to one command in five (seed %i)", async (seed) => {
    const odd = oddReplies(seed);
    let count = seed;
    const server = await serving((command, client) => {
      if (++count % 5 !== 0) return empty(command, client);
      client.socket.write(odd());
      return undefined;
    });
    const { cache, errors } = open(server, seed % 2 === 0);
    for (let round = 0; round < 3; round++) await survives(cache, errors, `seed ${seed}, round ${round}`);
    server.script = empty;
    await recovers(cache);
  });

  it.each([
    ["a cluster", (port: number) => `redis+cluster://127.0.0.1:${port}`],
    ["sentinels", (port: number) => `redis+sentinel://127.0.0.1:${port}/main`],
  ])("of %s to everything", async (_, url) => {
    for (const seed of SEEDS.slice(0, 3)) {
      const odd = oddReplies(seed);
      const server = await serving((command, client) => {
        // After the greeting, so that topology lookups get odd replies too.
        if (command[0] === "HELLO") return greet(command, client);
        client.socket.write(odd());
        return undefined;
      });
      const { cache, errors } = open(server, false, url(server.port));
      await survives(cache, errors, `seed ${seed}`);
    }
  });

  const NAMES = ["GET", "MGET", "SET", "DEL", "GETDEL", "EVALSHA", "SCAN", "GETRANGE", "STRLEN", "DBSIZE"];
  const GREETING = ["HELLO", "CLIENT", "INFO", "TIME", "PING"];
  it.each([...NAMES, ...GREETING])("to %s", async (name) => {
    const odd = oddReplies(name.length);
    const server = await serving((command, client) => {
      if (command[0] !== name) return empty(command, client);
      client.socket.write(odd());
      return undefined;
    });
    const { cache, errors } = open(server);
    for (let round = 0; round < 2; round++) await survives(cache, errors, name);
    server.script = empty;
    await recovers(cache);
  });
});

/** The reply to a command, and to a call that sends it. */
const WRONG: readonly (readonly [
  command: string,
  reply: string,
  call: (cache: XCache) => Promise<unknown>,
])[] = [
  ["MGET", "_\r\n", (cache) => cache.getMany(["k", "l"])],
  ["MGET", "*-1\r\n", (cache) => cache.getMany(["k", "l"])],
  ["MGET", "*1\r\n_\r\n", (cache) => cache.getMany(["k", "l"])],
  ["MGET", "*3\r\n_\r\n_\r\n_\r\n", (cache) => cache.getMany(["k", "l"])],
  ["MGET", "*2\r\n:1\r\n_\r\n", (cache) => cache.getMany(["k", "l"])],
  ["GET", ":1\r\n", (cache) => cache.get("k")],
  ["GET", "*0\r\n", (cache) => cache.get("k")],
  ["SET", "_\r\n", (cache) => cache.set("k", 1)],
  ["SET", "+QUEUED\r\n", (cache) => cache.set("k", 1)],
  ["SCAN", "*1\r\n$1\r\n0\r\n", listed],
  ["SCAN", "*2\r\n$1\r\n0\r\n_\r\n", listed],
  ["SCAN", "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n", listed],
];

it.each(WRONG)(
  "%s answered with %j is a protocol error that ends the connection",
  async (name, reply, call) => {
    let isOdd = false;
    const server = await serving((command, client) =>
      isOdd && command[0] === name ? reply : empty(command, client),
    );
    const { cache } = open(server);
    await cache.get("first");
    const before = server.present.length;
    isOdd = true;
    await expect(call(cache)).rejects.toMatchObject({
      code: "PROTOCOL_VIOLATED",
      errorType: "connection",
      message: expect.stringContaining(name),
    });
    isOdd = false;
    await recovers(cache);
    expect(before).toBe(1);
    expect(server.clients[name === "SCAN" ? 1 : 0]!.socket.destroyed).toBe(true);
  },
);
