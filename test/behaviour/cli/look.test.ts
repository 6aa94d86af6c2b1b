// The read-only commands with piped output: data on stdout, messages on stderr, no animation.
import { beforeAll, describe, expect, test } from "vitest";
import { jsonLines, type Ran } from "./installed.ts";
import { sharedProcess } from "./shared-process.ts";
import { diskUrl, testFolder, withCache } from "./store.ts";

const xcache = sharedProcess();

const folder = testFolder();
const kvUrl = diskUrl(folder);
const run = (...args: string[]): Promise<Ran> => xcache(args, { env: { XCACHE_KV_URL: kvUrl } });

const HOSTILE = "evil:\u001b[2J\nsecond\u202eline\u009b31m";
const SHOWN = "evil:\\x1b[2J\\nsecond\\u202eline\\x9b31m";

beforeAll(() =>
  withCache({ kvUrl }, async (cache) => {
    const ttl = Number.POSITIVE_INFINITY;
    await cache.set("user:ada", { name: "Ada", roles: ["admin"] }, { ttl, tags: ["users", "team:7"] });
    await cache.set("user:grace", "Grace", { ttl: 3 * 86_400, tags: ["users"] });
    await cache.set("page:/", "<h1>Hi</h1>\n", { ttl });
    await cache.set("bytes", Buffer.from([0, 1, 254, 255]), { ttl });
    await cache.set("when", new Map([[new Date(0), 5n]]), { ttl });
    await cache.set(HOSTILE, `value \u001b[31m red\nline`, { ttl, tags: ["\u0007bell"] });
  }),
);

describe("ping", () => {
  test("prints the latency, the kind of store, and its address", async () => {
    const { code, stdout, stderr } = await run("ping");
    expect(stdout).toMatch(
      /^PONG {5}[\d.]+ ms\nstore {4}folder on disk, durability \w+\naddress {2}file:\/\/\S+\n$/,
    );
    expect([code, stderr]).toEqual([0, ""]);
  });

  test("sends as many pings as --count says", async () => {
    const { stdout } = await run("ping", "--count", "3");
    expect(stdout).toMatch(/^1 .+\n2 .+\n3 .+\nPONG {5}min [\d.]+ ms, avg [\d.]+ ms, max [\d.]+ ms\n/);
  });
});

describe("list", () => {
  test("prints one key per line, with control characters escaped, and no summary into a pipe", async () => {
    const { code, stdout, stderr } = await run("list");
    const keys = stdout.split("\n").filter(Boolean);
    expect(keys.sort()).toEqual(["bytes", SHOWN, "page:/", "user:ada", "user:grace", "when"].sort());
    expect([code, stderr]).toEqual([0, ""]);
  });

  test("filters by pattern, by tags, by both, and up to a limit", async () => {
    const [pattern, tag, tags, both, limit] = await Promise.all([
      run("list", "--pattern", "user:*"),
      run("list", "--tags", "team:7"),
      run("list", "--tags", "team:7,users"),
      run("list", "--tags", "users", "--pattern", "*grace"),
      run("list", "--limit", "2"),
    ]);
    expect(pattern.stdout).toBe("user:ada\nuser:grace\n");
    expect(tag.stdout).toBe("user:ada\n");
    expect(tags.stdout).toBe("user:ada\nuser:grace\n");
    expect(both.stdout).toBe("user:grace\n");
    expect(limit.stdout.split("\n")).toHaveLength(3);
  });

  test("shows time to live, size, age and tags in its long form", async () => {
    const { stdout } = await run("list", "--long", "--pattern", "user:*");
    const [ada, grace] = stdout.split("\n");
    expect(ada).toMatch(/^ {3}never {2} +\d+ B {2} +\S+( \S+)? {2}user:ada {2}#users #team:7$/);
    expect(grace).toMatch(/^ +(2d 23h|3d) {2} +\d+ B {2} +\S+( \S+)? {2}user:grace {2}#users$/);
  });

  test("prints unmodified keys in JSON, escaped only as JSON requires", async () => {
    const ran = await run("list", "--json", "--pattern", "evil*");
    expect(ran.stdout).toContain("\\u001b[2J\\nsecond\\u202eline\\u009b31m");
    expect(jsonLines(ran)[0]).toMatchObject({ key: HOSTILE, tags: ["\u0007bell"], ttl_seconds: null });
  });
});

describe("search", () => {
  test("prints scores and keys, best first, down to the threshold", async () => {
    const [strict, loose] = await Promise.all([
      run("search", "user grac"),
      run("search", "user grace", "--threshold", "40", "--limit", "2"),
    ]);
    expect(strict.stdout).toBe("100  user:grace\n");
    expect(loose.stdout).toMatch(/^100 {2}user:grace\n {1}\d\d {2}user:ada\n$/);
  });

  test("tolerates a missing letter in a short word", async () => {
    const { stdout } = await run("search", "usr");
    expect(
      stdout
        .split("\n")
        .filter(Boolean)
        .map((line) => line.replace(/^ *\d+ +/, ""))
        .sort(),
    ).toEqual(["user:ada", "user:grace"]);
  });

  test("says on stderr that nothing was found", async () => {
    const { code, stdout, stderr } = await run("search", "zzzzzz");
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toContain("--threshold");
  });
});

describe("doctor", () => {
  test("is brief when all is well, and --verbose prints everything", async () => {
    const [short, long] = await Promise.all([run("doctor"), run("doctor", "--verbose")]);
    expect(short.stdout).toMatch(
      /^ {2}ok connection: file:\/\/\S+ answered in [\d.]+ ms\n {2}ok all \d+ checks\n {2}settings: kv_url; --verbose shows all of them\n$/,
    );
    expect([short.code, short.stderr]).toEqual([0, ""]);
    const checks = Number(/all (\d+) checks/.exec(short.stdout)?.[1]);
    expect(long.stdout.match(/^ {2}ok /gm)).toHaveLength(checks);
  });
});

describe("get", () => {
  test("shows objects as JSON, text unchanged, and other values as Node does", async () => {
    const [object, text, map, hostile] = await Promise.all([
      run("get", "user:ada"),
      run("get", "page:/"),
      run("get", "when"),
      run("get", HOSTILE),
    ]);
    expect(object.stdout).toBe('{\n  "name": "Ada",\n  "roles": [\n    "admin"\n  ]\n}\n');
    expect(text.stdout).toBe("<h1>Hi</h1>\n\n");
    expect(map.stdout).toBe("Map(1) { 1970-01-01T00:00:00.000Z => 5n }\n");
    expect(hostile.stdout).toBe("value \\x1b[31m red\nline\n");
  });

  test("prints text and bytes unchanged with --raw", async () => {
    const [text, bytes] = await Promise.all([
      run("get", "page:/", "--raw"),
      run("get", "bytes", "--raw", "--json"),
    ]);
    expect(text.stdout).toBe("<h1>Hi</h1>\n");
    expect(Buffer.from(bytes.stdout)).toEqual(Buffer.from(Buffer.from([0, 1, 254, 255]).toString()));
  });

  test("exits with 1 when there is no entry, and says how to find others", async () => {
    const { code, stdout, stderr } = await run("get", "nobody");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^error: no entry under "nobody"\nhint: .*xcache search/);
  });
});

test("tags prints the tags of an entry, one per line", async () => {
  const [some, none, absent] = await Promise.all([
    run("tags", "user:ada"),
    run("tags", "page:/"),
    run("tags", "x"),
  ]);
  expect(some.stdout).toBe("users\nteam:7\n");
  expect([none.code, none.stdout, none.stderr]).toEqual([0, "", "the entry has no tags\n"]);
  expect(absent.code).toBe(1);
});

test("health prints one line, or one per check", async () => {
  const [brief, detailed] = await Promise.all([run("health"), run("health", "--detailed")]);
  expect(brief.stdout).toMatch(/^healthy file:\S+ answered in [\d.]+ ms\n$/);
  expect(detailed.stdout).toMatch(
    /^healthy file:\S+\n {2}ok {2}store .+\n {2}ok {2}circuit_breaker {2}closed\n/,
  );
  expect([brief.code, detailed.code]).toEqual([0, 0]);
});

test("stats reports when no process has counted anything", async () => {
  const { code, stdout, stderr } = await run("stats");
  expect(stdout).toMatch(/^hit rate {4}0\.0 % .*\noperations {2}0 /);
  expect(stdout).toMatch(/\nkeys {8}about 6\n/);
  expect(stderr).toContain("enable_metrics");
  expect(code).toBe(0);
});

test("read-only commands leave no trace in the statistics", async () => {
  const looks = [
    ["stats", "--watch", "--count", "2", "--interval", "1ms"],
    ["get", "user:ada"],
    ["list"],
    ["search", "x"],
  ];
  for (const look of looks) await run(...look);
  const [stats] = jsonLines(await run("stats", "--json"));
  expect(stats).toMatchObject({ total_operations: 0, history: [] });
});
