// Every command against a server that hangs: it ends within --timeout, with the right exit code, and shows no password.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { COMMANDS } from "../../../src/cli/specs/table.ts";
import { freezeMemcached, type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { installedProgram, xcache } from "./installed.ts";
import { testFolder } from "./store.ts";

const folder = testFolder();
const PASSWORD = "s3cret";

/** Commands that need no store are not tested here. */
const WITHOUT_STORE = ["extras", "completion", "db"];
const LINES: readonly (readonly [args: readonly string[], code: number])[] = [
  [["ping"], 3],
  [["stats"], 3],
  [["stats", "--watch"], 3],
  [["stats", "--functions"], 3],
  [["stats", "--processes"], 3],
  [["list"], 3],
  [["search", "x"], 3],
  [["get", "k"], 3],
  [["tags", "k"], 3],
  [["health", "--detailed"], 1],
  [["doctor"], 3],
  [["advise"], 3],
  [["ui", "--no-open"], 3],
  [["export", "-"], 3],
  [["set", "k", "1"], 3],
  [["delete", "k"], 3],
  [["invalidate", "--tags", "t", "--yes"], 3],
  [["clear", "--yes"], 3],
  [["warm", "lines.jsonl"], 3],
  [["import", "lines.jsonl"], 3],
];

let redis: RedisServer;
let memcached: MemcachedServer;
beforeAll(async () => {
  installedProgram();
  writeFileSync(join(folder, "lines.jsonl"), '{"key":"k","value":1}\n');
  [redis, memcached] = await Promise.all([startRedis({ requirepass: PASSWORD }), startMemcached()]);
  redis.freeze();
  await freezeMemcached(memcached);
});
afterAll(() => Promise.all([redis.stop(), memcached.stop()]));

test("every command that needs a store is tested", () => {
  const tried = new Set([...LINES.map(([[name]]) => name), ...WITHOUT_STORE]);
  expect(COMMANDS.map(({ name }) => name).filter((name) => !tried.has(name))).toEqual([]);
});

test.each(LINES)(
  "xcache %j gives up after --timeout with exit code %i, in JSON output too",
  async (args, code) => {
    const run = (url: string, ...more: string[]) =>
      xcache([...args, "--kv-url", url, "--timeout", "321ms", ...more], { cwd: folder });
    const [json, text] = await Promise.all([run(redis.url, "--json"), run(memcached.url)]);
    for (const ran of [json, text]) {
      expect(ran.code).toBe(code);
      expect(ran.stdout + ran.stderr).toContain("0.321 s");
      expect(ran.stdout + ran.stderr).not.toContain(PASSWORD);
    }
    if (json.stdout !== "") return;
    expect(JSON.parse(json.stderr)).toEqual({
      error: {
        code: "OPERATION_TIMEOUT",
        message: expect.any(String),
        hint: expect.any(String),
        exit_code: code,
      },
    });
  },
);
