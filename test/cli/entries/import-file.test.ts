// export, import and warm: entries as JSON Lines, in both directions.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonLines, type Ran } from "../../behaviour/cli/installed.ts";
import { sharedProcess } from "../../behaviour/cli/shared-process.ts";
import { diskUrl, testFolder, withCache } from "../../behaviour/cli/store.ts";

const xcache = sharedProcess();

const folder = testFolder();
const run = (kvUrl: string, args: readonly string[], input = ""): Promise<Ran> =>
  xcache(args, { env: { XCACHE_KV_URL: kvUrl }, input, cwd: folder });

const VALUES: Readonly<Record<string, unknown>> = {
  object: { a: [1, "two", null, true], $type: "mine", nested: { undefined: undefined } },
  date: new Date(1_700_000_000_123),
  map: new Map<unknown, unknown>([["k", new Set([1, -0])]]),
  big: 2n ** 80n,
  numbers: [Number.NaN, Number.POSITIVE_INFINITY, -0],
  buffer: Buffer.from([0, 255]),
  floats: new Float64Array([1.5, Number.NaN]),
  regexp: /a+/gi,
  text: "line\nline \u0000 \ud800",
  "odd key\n\u001b": null,
};

test("import restores exactly what export wrote, with tags and the remaining ttl", async () => {
  const [from, to] = [diskUrl(folder, "from"), diskUrl(folder, "to")];
  await withCache({ kvUrl: from }, async (cache) => {
    for (const [key, value] of Object.entries(VALUES))
      await cache.set(key, value, { ttl: 1_000, tags: ["all", key] });
    await cache.set("ever", 1, { ttl: Number.POSITIVE_INFINITY });
  });
  const exported = await run(from, ["export", "all.jsonl"]);
  expect(exported).toMatchObject({ code: 0, stderr: "" });
  expect(exported.stdout).toMatch(/^wrote 11 entries to all\.jsonl in \S+( \S+)?\n$/);
  expect(statSync(join(folder, "all.jsonl")).mode & 0o777).toBe(0o600);
  expect((await run(to, ["import", "all.jsonl"])).stdout).toMatch(/^stored 11 entries in /);
  await withCache({ kvUrl: to }, async (cache) => {
    for (const [key, value] of Object.entries(VALUES)) {
      expect(await cache.get(key)).toEqual(value);
      expect(await cache.tags(key)).toEqual(["all", key]);
      expect(await cache.ttl(key)).toBeGreaterThan(900);
      expect(await cache.ttl(key)).toBeLessThanOrEqual(1_000);
    }
    expect(await cache.ttl("ever")).toBe(Number.POSITIVE_INFINITY);
  });
});

test("export filters by pattern and tags, and writes only entries to stdout", async () => {
  const kvUrl = diskUrl(folder, "some");
  await withCache({ kvUrl }, async (cache) => {
    await cache.set("a:1", 1, { tags: ["x"] });
    await cache.set("a:2", 2);
  });
  const [pattern, tag] = await Promise.all([
    run(kvUrl, ["export", "-", "--pattern", "a:2"]),
    run(kvUrl, ["export", "-", "--tags", "x", "--json"]),
  ]);
  expect(jsonLines(pattern)).toEqual([
    {
      key: "a:2",
      value: 2,
      ttl_seconds: expect.any(Number),
      expires_at: expect.stringMatching(/Z$/),
      tags: [],
    },
  ]);
  expect(jsonLines(tag).map(({ key }) => key)).toEqual(["a:1"]);
});

test("export does not replace a file unless forced", async () => {
  const kvUrl = diskUrl(folder, "force");
  await withCache({ kvUrl }, (cache) => cache.set("a", 1));
  writeFileSync(join(folder, "taken.jsonl"), "precious");
  const refused = await run(kvUrl, ["export", "taken.jsonl"]);
  expect([refused.code, refused.stderr.includes("--force")]).toEqual([2, true]);
  expect(readFileSync(join(folder, "taken.jsonl"), "utf8")).toBe("precious");
  expect((await run(kvUrl, ["export", "taken.jsonl", "--force"])).code).toBe(0);
  expect(readFileSync(join(folder, "taken.jsonl"), "utf8")).toContain('"key":"a"');
  expect(readdirSync(folder).filter((name) => name.endsWith(".partial"))).toEqual([]);
});

test("export refuses a special file, writes through a symbolic link, and leaves no file behind when it fails", async () => {
  const kvUrl = diskUrl(folder, "force");
  const device = await run(kvUrl, ["export", "/dev/null", "--force"]);
  expect([device.code, device.stderr]).toEqual([
    2,
    expect.stringContaining("/dev/null is not a regular file"),
  ]);
  expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  writeFileSync(join(folder, "real.jsonl"), "old");
  symlinkSync("real.jsonl", join(folder, "link.jsonl"));
  expect((await run(kvUrl, ["export", "link.jsonl", "--force"])).code).toBe(0);
  expect(lstatSync(join(folder, "link.jsonl")).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(folder, "real.jsonl"), "utf8")).toContain('"key":"a"');
  expect((await run(kvUrl, ["export", "bad.jsonl", "--pattern", "[a"])).code).toBe(2);
  expect(readdirSync(folder).filter((name) => /partial|bad/.test(name))).toEqual([]);
});

test("a folder that cannot be written to gives an error with a remedy", async () => {
  const { code, stderr } = await run(diskUrl(folder, "force"), ["export", "/nowhere/x.jsonl"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/error: .*ENOENT.*\nhint: Check the path/);
});

test("import skips entries that have expired, and replaces existing ones", async () => {
  const kvUrl = diskUrl(folder, "ended");
  await withCache({ kvUrl }, (cache) => cache.set("b", "old"));
  const lines = [
    { key: "a", value: 1, expires_at: "2020-01-01T00:00:00.000Z", ttl_seconds: 600 },
    { key: "b", value: "new" },
  ];
  const { stdout } = await run(kvUrl, ["import", "-"], lines.map((line) => JSON.stringify(line)).join("\n"));
  expect(stdout).toMatch(/^stored 1 entry in \S+, 1 expired\n$/);
  await withCache({ kvUrl }, async (cache) => {
    expect([await cache.exists("a"), await cache.get("b")]).toEqual([false, "new"]);
  });
});

test("warm keeps existing entries, and adds a ttl and tags to entries without", async () => {
  const kvUrl = diskUrl(folder, "warm");
  await withCache({ kvUrl }, (cache) => cache.set("a", "mine"));
  writeFileSync(
    join(folder, "warm.jsonl"),
    '{"key":"a","value":"theirs"}\n\n{"key":"b","value":[1]}\r\n{"key":"c","value":0,"ttl_seconds":5,"tags":["own"]}\n',
  );
  const { stdout } = await run(kvUrl, ["warm", "warm.jsonl", "--ttl", "1h", "--tags", "warmed"]);
  expect(stdout).toMatch(/^stored 2 entries in \S+, 1 already existed\n$/);
  await withCache({ kvUrl }, async (cache) => {
    expect(await cache.get("a")).toBe("mine");
    expect(await cache.ttl("b")).toBeGreaterThan(3_500);
    expect(await cache.ttl("c")).toBeLessThanOrEqual(5);
    expect(await cache.tags("c")).toEqual(["own", "warmed"]);
  });
});

test("a bad line ends the import, which names the line and reports what was stored before it", async () => {
  const { code, stderr } = await run(
    diskUrl(folder, "bad"),
    ["import", "-"],
    '{"key":"first","value":1}\n\n{\n',
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^stored 1 entry in \S+, failed after line 1\nerror: -:3: not valid JSON\nhint: Each line must be/,
  );
});

test("a named pipe is read like a file", async () => {
  execFileSync("sh", ["-c", `mkfifo "$0"`, join(folder, "pipe")]);
  const ran = run(diskUrl(folder, "pipe-store"), ["import", "pipe"]);
  await writeFile(join(folder, "pipe"), '{"key":"a","value":1}\n');
  expect(await ran).toEqual({ code: 0, stdout: expect.stringMatching(/^stored 1 entry in /), stderr: "" });
});

test("a file that cannot be opened is an error of the command line", async () => {
  const server = createServer().listen(join(folder, "socket"));
  await once(server, "listening");
  const { code, stderr } = await run(diskUrl(folder, "none"), ["import", "socket"]);
  server.close();
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: cannot read socket: ENXIO\nhint: /)]);
});

test("a missing file is an error of the command line", async () => {
  const { code, stderr } = await run(diskUrl(folder, "none"), ["warm", "missing.jsonl"]);
  expect([code, stderr.includes("it does not exist")]).toEqual([2, true]);
  expect(existsSync(join(folder, "none"))).toBe(false);
});
