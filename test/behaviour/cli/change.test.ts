// The commands that change a cache, and their safeguards.
import { describe, expect, test } from "vitest";
import { jsonLines, type Ran } from "./installed.ts";
import { sharedProcess } from "./shared-process.ts";
import { diskUrl, testFolder, withCache } from "./store.ts";

const xcache = sharedProcess();

const folder = testFolder();
const place = (name: string) => {
  const kvUrl = diskUrl(folder, name);
  return {
    run: (args: readonly string[], input = ""): Promise<Ran> =>
      xcache(args, { env: { XCACHE_KV_URL: kvUrl }, input }),
    use: <T>(work: Parameters<typeof withCache<T>>[1]): Promise<T> => withCache({ kvUrl }, work),
  };
};

describe("set", () => {
  const { run, use } = place("set");

  test("stores JSON as the value it describes, anything else as text", async () => {
    const values: [string, string, unknown][] = [
      ["n", "-5", -5],
      ["o", '{"a":[1,null]}', { a: [1, null] }],
      ["t", "hello world", "hello world"],
      ["b", '{"$type":"bigint","value":"7"}', 7n],
    ];
    for (const [key, text] of values) expect((await run(["set", key, text])).code).toBe(0);
    await run(["set", "s", "5", "--string"]);
    await run(["set", "in", "-"], "from\nstdin");
    await use(async (cache) => {
      for (const [key, , value] of values) expect(await cache.get(key)).toEqual(value);
      expect(await cache.get("s")).toBe("5");
      expect(await cache.get("in")).toBe("from\nstdin");
    });
  });

  test("takes a time to live and tags", async () => {
    const { stdout } = await run(["set", "k", "v", "--ttl", "2h", "--tags", "a,b", "--tags", '["c,d"]']);
    expect(stdout).toBe('stored "k" (string) for 2h\n');
    await run(["set", "ever", "v", "--ttl", "never"]);
    await use(async (cache) => {
      expect(await cache.tags("k")).toEqual(["a", "b", "c,d"]);
      expect(await cache.ttl("k")).toBeGreaterThan(7_100);
      expect(await cache.ttl("ever")).toBe(Number.POSITIVE_INFINITY);
    });
  });
});

test("delete reports how many of the keys existed", async () => {
  const { run, use } = place("delete");
  await use((cache) => cache.setMany({ a: 1, b: 2, c: 3 }));
  expect((await run(["delete", "a", "b", "x", "a"])).stdout).toBe("deleted 2 of 3 keys\n");
  await use(async (cache) =>
    expect([await cache.exists("a"), await cache.exists("c")]).toEqual([false, true]),
  );
});

describe("invalidate", () => {
  const { run, use } = place("invalidate");
  const fill = () =>
    use(async (cache) => {
      await cache.setMany({ "user:1": 1, "user:2": 2 }, { tags: ["users"] });
      await cache.set("team", 1, { tags: ["teams"] });
      await cache.set("page", 1);
    });
  const left = () =>
    use(async (cache) => {
      const keys: string[] = [];
      for await (const key of cache.keys()) keys.push(key);
      return keys.sort();
    });

  test("changes nothing without --yes if stdin is not a terminal, and exits 2", async () => {
    await fill();
    for (const what of [["invalidate", "--tags", "users"], ["clear"]]) {
      const { code, stdout, stderr } = await run(what);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("--yes");
    }
    expect(await left()).toHaveLength(4);
  });

  test("only counts with --dry-run", async () => {
    await fill();
    const [tag, pattern, keys, all] = await Promise.all([
      run(["invalidate", "--tags", "users,teams", "--dry-run"]),
      run(["invalidate", "--pattern", "user:*", "--dry-run"]),
      run(["invalidate", "--keys-from", "-", "--dry-run"], "page\nnobody\n"),
      run(["clear", "--dry-run"]),
    ]);
    expect(tag.stdout).toBe('would remove 3 entries with one of the tags "users", "teams"\n');
    expect(pattern.stdout).toBe("would remove 2 entries whose keys match user:*\n");
    expect(keys.stdout).toBe("would remove 1 entry from the list of keys\n");
    expect(all.stdout).toMatch(/^would remove about 4 entries of the prefix "xcache" at file:/);
    expect(await left()).toHaveLength(4);
  });

  test("removes by tag", async () => {
    await fill();
    expect(await run(["invalidate", "--tags", "users", "--yes"])).toEqual({
      code: 0,
      stdout: 'removed 2 entries with the tag "users"\n',
      stderr: "",
    });
    expect(await left()).toEqual(["page", "team"]);
  });

  test("removes by pattern", async () => {
    await fill();
    expect((await run(["invalidate", "--pattern", "*e*", "-y"])).stdout).toBe(
      "removed 4 entries whose keys match *e*\n",
    );
    expect(await left()).toEqual([]);
  });

  test("removes the keys listed by list --json, whatever characters they contain, and those of plain lines", async () => {
    await fill();
    await use((cache) => cache.set("two\nlines", 1, { tags: ["teams"] }));
    const listed = await run(["list", "--tags", "teams", "--json"]);
    const { stdout } = await run(["invalidate", "--keys-from", "-", "--yes"], `${listed.stdout}page\n`);
    expect(stdout).toBe("removed 3 entries from the list of keys\n");
    expect(await left()).toEqual(["user:1", "user:2"]);
  });

  test("does not scan the store with --no-count", async () => {
    await fill();
    expect((await run(["invalidate", "--tags", "users", "--yes", "--no-count"])).stdout).toBe(
      'removed all entries with the tag "users"\n',
    );
    expect(await left()).toEqual(["page", "team"]);
  });
});

test("clear removes every entry of the prefix and leaves other prefixes alone", async () => {
  const { run, use } = place("clear");
  await use((cache) => cache.setMany({ a: 1, b: 2 }));
  await withCache({ kvUrl: diskUrl(folder, "clear"), keyPrefix: "other" }, (cache) => cache.set("a", 1));
  const [row] = jsonLines(await run(["clear", "--yes", "--json"]));
  expect(row).toEqual({
    prefix: "xcache",
    namespace: [],
    matched: 2,
    approximate: true,
    removed: null,
    dry_run: false,
    complete: true,
  });
  expect((await run(["list"])).stdout).toBe("");
  expect((await run(["list", "--prefix", "other"])).stdout).toBe("a\n");
});
