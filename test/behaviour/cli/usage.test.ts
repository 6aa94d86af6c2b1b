// The command line itself: version, help, mistakes, flags and where settings come from.

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { VERSION } from "../../../src/version.ts";
import { soon } from "../../support/pace.ts";
import { bareEnvironment, installedProgram, jsonLines, start, xcache } from "./installed.ts";
import { sharedProcess } from "./shared-process.ts";
import { diskUrl, testFolder, withCache } from "./store.ts";

/** The scripts that a process has executed, as V8 reports them. */
interface Coverage {
  readonly result: readonly { readonly url: string }[];
}

const folder = testFolder();
const kvUrl = diskUrl(folder);

beforeAll(() => withCache({ kvUrl, keyPrefix: "shop" }, (cache) => cache.set("a", 1)));

describe("--version", () => {
  test("prints the version of the package", async () => {
    for (const flag of ["--version", "-V"]) {
      expect(await xcache([flag])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: "" });
    }
    expect((await xcache(["--json", "--version"])).stdout).toBe(`${VERSION}\n`);
  });

  test("loads only the entry file of the program", () => {
    const report = join(folder, "loaded");
    const env = { ...bareEnvironment(), NODE_V8_COVERAGE: report };
    expect(spawnSync(process.execPath, [installedProgram(), "--version"], { env }).status).toBe(0);
    const loaded = readdirSync(report).flatMap(
      (file) => (JSON.parse(readFileSync(join(report, file), "utf8")) as Coverage).result,
    );
    const ours = loaded.filter(({ url }) => url.startsWith("file:")).map(({ url }) => basename(url));
    expect(ours).toEqual(["main.js"]);
  });
});

test.each(["--help", "--version"])("%s ends quietly when its output is not read", async (flag) => {
  const child = start([flag]);
  child.stdout?.destroy();
  const [stderr] = await Promise.all([text(child.stderr!), once(child, "close")]);
  expect(stderr).toBe("");
  expect(child.exitCode).toBe(0);
});

describe("help", () => {
  test("is shown on stdout when requested, in each form", async () => {
    const [flag, command, sub, subcommand] = await Promise.all([
      xcache(["--help"]),
      xcache(["help"]),
      xcache(["list", "--help"]),
      xcache(["help", "list"]),
    ]);
    expect(flag.code).toBe(0);
    expect(flag.stderr).toBe("");
    expect(flag.stdout).toContain("Examples:");
    expect(command).toEqual(flag);
    expect(sub.stdout).toContain("xcache list --pattern 'user:*'");
    expect(subcommand).toEqual(sub);
  });

  test("is shown on stderr, with exit code 2, when no command is given", async () => {
    const { code, stdout, stderr } = await xcache([]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: xcache <command>");
  });
});

describe("a mistake", () => {
  const mistaken = sharedProcess();

  test.each([
    [["stast"], "unknown command 'stast'", "Did you mean stats?"],
    [["list", "--patern", "x"], "unknown option '--patern'", "Did you mean --pattern?"],
    [["list", "--patern=x"], "unknown option '--patern=x'", "Did you mean --pattern?"],
    [["--jsno=1", "list"], "unknown option '--jsno=1'", "Did you mean --json?"],
    [["frobnicate"], "unknown command 'frobnicate'", "See `xcache --help`"],
    [["search", "x", "--threshold", "101"], "whole number from 0 to 100", "xcache search --help"],
    [["stats", "--since", "soon"], "must be a duration", "xcache stats --help"],
    [["get"], "missing required argument 'key'", "xcache get --help"],
    [["ping", "--kv-url", "redsi://h"], "--kv-url", 'did you mean "redis"?'],
    [["ping", "--config", "/nowhere.yaml"], "it does not exist", "Check the path"],
    [["extras", "monitorin"], 'unknown extra "monitorin"', 'Did you mean "monitoring"?'],
    [["completion", "csh"], 'no completion script for "csh"', "bash"],
    [["invalidate"], "--tags, --pattern and --keys-from", "xcache invalidate --help"],
    [["invalidate", "--tags", "a", "--pattern", "b"], "one of", "xcache invalidate --help"],
    [["invalidate", "--tags", "", "--yes"], "must name at least one tag", "xcache invalidate --help"],
    [["list", "--tags", ","], "must name at least one tag", "xcache list --help"],
    [["export", "--tags", "[]"], "must name at least one tag", "xcache export --help"],
    [["stats", "--interval", "1s"], "need --watch", "Add --watch"],
    [["list", "--pattern", "[a"], "never closed", "Close the class"],
  ])("in `xcache %j` says what is wrong and what to do next, and exits 2", async (args, wrong, next) => {
    const { code, stdout, stderr } = await mistaken(args, { env: { XCACHE_KV_URL: kvUrl } });
    expect(stderr).toContain(wrong);
    expect(stderr).toContain(next);
    expect([code, stdout]).toEqual([2, ""]);
  });

  test("is one JSON object on stderr with --json", async () => {
    const [parsed, run] = await Promise.all([
      mistaken(["stast", "--json"]),
      mistaken(["invalidate", "--json"]),
    ]);
    for (const { code, stdout, stderr } of [parsed, run]) {
      expect([code, stdout]).toEqual([2, ""]);
      const { error } = JSON.parse(stderr) as { error: Record<string, unknown> };
      expect(error).toEqual({
        code: "usage",
        message: expect.any(String),
        hint: expect.any(String),
        exit_code: 2,
      });
    }
  });

  test.each([
    [["ping", "--kvurl=redis://u:s3cret@h:1"]],
    [["--kvurl=redis://u:s3cret@h:1", "ping"]],
    [["redis://u:s3cret@h:1"]],
    [["ping", "--timeout", "redis://u:s3cret@h:1"]],
    [["ping", "--kv-url", "redis://u:s3cret@h:1x"]],
    [["ping", "--kv-url", "redis://u:s3 cret@h"]],
    [["ping", "--config", "redis://u:s3cret@h"]],
    [["warm", "redis://u:s3cret@h"]],
    [["extras", "redis://u:s3cret@h"]],
    [["set", "k", "v", "--ttl", "redis://u:s3cret@h"]],
  ])("in `xcache %j` does not show the password of an address", async (args) => {
    for (const more of [[], ["--json"]]) {
      const { code, stdout, stderr } = await mistaken([...args, ...more]);
      expect(code).toBe(2);
      expect(stdout + stderr).not.toContain("s3");
      expect(stderr).toContain("***@h");
    }
  });

  test("never prints control characters to the terminal", async () => {
    const { stderr } = await mistaken(["\u001b[31mred"]);
    expect(stderr).toContain("\\x1b[31mred");
    expect(stderr).not.toContain("\u001b");
  });
});

describe("the flags of all commands", () => {
  test("stand before or after the command", async () => {
    const args = ["--kv-url", kvUrl, "--prefix", "shop"];
    const [before, after] = await Promise.all([xcache([...args, "list"]), xcache(["list", ...args])]);
    expect(before).toEqual({ code: 0, stdout: "a\n", stderr: "" });
    expect(after).toEqual(before);
  });

  test("override the environment, which overrides the file, which overrides the default", async () => {
    const config = join(folder, "cache.yaml");
    writeFileSync(config, `kv_url: ${kvUrl}\nkey_prefix: file\ndefault_ttl: 60\npool_size: 2\n`);
    const env = { XCACHE_KEY_PREFIX: "env", XCACHE_DEFAULT_TTL: "30" };
    const ran = await xcache(["doctor", "--config", config, "--prefix", "shop", "--json"], { env });
    const [{ settings } = { settings: [] }] = jsonLines<{
      settings: { name: string; value: unknown; origin: string }[];
    }>(ran);
    const of = (wanted: string): unknown => {
      const { value, origin } = settings.find(({ name }) => name === wanted) ?? {};
      return [value, origin];
    };
    expect(of("key_prefix")).toEqual(["shop", "flag"]);
    expect(of("default_ttl")).toEqual([30, "env"]);
    expect(of("pool_size")).toEqual([2, "file"]);
    expect(of("operation_timeout")).toEqual([1, "default"]);
    expect(ran.code).toBe(0);
  });

  test("select namespaces, nested ones too", async () => {
    await withCache({ kvUrl, keyPrefix: "deep" }, (cache) =>
      cache.namespace("a/b").namespace("c").set("k", "deep value"),
    );
    const place = ["--kv-url", kvUrl, "--prefix", "deep", "--namespace", "a/b"];
    const [below, above] = await Promise.all([
      xcache(["list", ...place, "--namespace", "c"]),
      xcache(["list", ...place]),
    ]);
    expect([below.stdout, above.stdout]).toEqual(["k\n", ""]);
  });

  test("set a deadline for a store that does not answer", async () => {
    const startedAt = performance.now();
    // TEST-NET-1: packets to it are dropped or refused, never answered.
    const { code, stderr } = await xcache([
      "ping",
      "--kv-url",
      "redis://192.0.2.1:6379",
      "--timeout",
      "300ms",
    ]);
    expect(code).toBe(3);
    expect(stderr).toContain("hint:");
    expect(performance.now() - startedAt).toBeLessThan(soon(10_000));
  });
});
