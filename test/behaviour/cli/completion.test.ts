// Completion: the candidates at the cursor, and how they are passed to bash. For the real shells see shells.test.ts.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { bashCandidate, readBashLine } from "../../../src/cli/completion/bash-line.ts";
import { completionPosition } from "../../../src/cli/completion/candidates.ts";
import { sharedProcess } from "./shared-process.ts";
import { diskUrl, testFolder, withCache } from "./store.ts";

const xcache = sharedProcess();

const folder = testFolder();
const kvUrl = diskUrl(folder);

beforeAll(() =>
  withCache({ kvUrl }, (cache) =>
    cache.setMany(
      { "user:1:name": 1, "user:2:name": 1, "user two": 1, page: 1 },
      { tags: ["users", "team:7"] },
    ),
  ),
);

describe("at the end of a command line", () => {
  const at = (...words: string[]) => completionPosition(words).completes;

  test("commands come first, then the arguments of the command", () => {
    expect(at("")).toContain("stats");
    expect(at("")).not.toContain("complete");
    expect(at("get", "us")).toBe("keys");
    expect(at("get", "a", "b")).toEqual([]);
    expect(at("delete", "a", "b", "c")).toBe("keys");
    expect(at("warm", "")).toBe("files");
    expect(at("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(at("--json", "")).toContain("list");
  });

  test("flags are those of the command and of all commands", () => {
    expect(at("list", "--")).toEqual(expect.arrayContaining(["--pattern", "--long", "--kv-url", "--help"]));
    expect(at("--")).not.toContain("--pattern");
  });

  test("a flag is completed with its possible values", () => {
    expect(at("list", "--tags", "")).toBe("tags");
    expect(at("list", "-t", "")).toBe("tags");
    expect(at("list", "--config", "")).toBe("files");
    expect(at("search", "--limit", "")).toEqual([]);
    expect(at("get", "--prefix", "p", "")).toBe("keys");
  });

  test("earlier flags locate the store", () => {
    const { flags } = completionPosition(["--kv-url", "memory://", "get", "--prefix=shop", ""]);
    expect([...flags]).toEqual([
      ["--kv-url", ["memory://"]],
      ["--prefix", ["shop"]],
    ]);
  });

  test("a value after an equals sign is completed as the flag's value", () => {
    expect(completionPosition(["list", "--tags=te"])).toMatchObject({
      lead: "--tags=",
      word: "te",
      completes: "tags",
    });
    expect(completionPosition(["list", "--unknown=te"]).completes).toContain("--pattern");
  });
});

const complete = async (...words: string[]): Promise<string> =>
  (await xcache(["complete", "--", ...words], { env: { XCACHE_KV_URL: kvUrl } })).stdout;

test("tags and keys are read from the store, keys segment by segment", async () => {
  expect(await complete("get", "--timeout", "20s", "u")).toBe("parts\nuser two\nuser:\n");
  expect(await complete("--timeout", "20s", "get", "user:1")).toBe("parts\nuser:1:\n");
  expect(await complete("list", "--timeout=20s", "--tags", "")).toBe("words\nteam:7\nusers\n");
  expect(await complete("list", "--timeout=20s", "--tags=us")).toBe("words\n--tags=users\n");
  expect(await complete("sta")).toBe("words\nstats\n");
  expect(await complete("warm", "")).toBe("files\n");
});

test("keys are those of the namespace on the command line", async () => {
  await withCache({ kvUrl, keyPrefix: "deep" }, (cache) =>
    cache.namespace("a").namespace("b").set("inner", 1),
  );
  const place = ["--prefix", "deep", "--namespace", "a", "--namespace=b", "--timeout", "20s"];
  expect(await complete(...place, "get", "")).toBe("words\ninner\n");
});

test("an unreachable store gives no candidates and no output", async () => {
  const ran = await xcache(["complete", "--", "get", ""], { env: { XCACHE_KV_URL: "redis://127.0.0.1:1" } });
  expect(ran).toEqual({ code: 0, stdout: "words\n", stderr: "" });
});

describe("a line of bash", () => {
  const BREAKS = " \t\n\"'@><=;|&(:";
  const at = (line: string) => readBashLine(line, BREAKS);

  test("is read as bash reads it", () => {
    expect(at(`xcache get "a b"c'd e'f\\ g ''`).words).toEqual(["xcache", "get", "a bcd ef g", ""]);
    expect(at(String.raw`xcache "a\"\$\x" `).words).toEqual(["xcache", String.raw`a"$\x`, ""]);
  });

  test("keeps the part of its last word that bash does not replace", () => {
    expect(at("xcache get user:1:na")).toMatchObject({ quote: "", kept: 7 });
    expect(at(String.raw`xcache get user\:1`)).toMatchObject({ quote: "", kept: 0 });
    expect(at("xcache get user:'a b")).toMatchObject({ quote: "'", kept: 5 });
    expect(at("xcache list --tags=x")).toMatchObject({ kept: 7 });
  });

  test("accepts no candidate that the open quote cannot contain", () => {
    expect(bashCandidate("it's", at("xcache get 'i"))).toBeUndefined();
    expect(bashCandidate("hey!", at('xcache get "h'))).toBeUndefined();
    expect(bashCandidate("hey!", at("xcache get h"))).toBe("hey\\!");
  });

  test("passes every candidate to the program unchanged, whatever its characters mean to bash", async () => {
    const name = fc.string({
      unit: fc.constantFrom(..."ab $`\\\"'!*?[]{}()<>|&;#~=@^%:,./-+é→\u{1f600}"),
      maxLength: 12,
    });
    const names = fc.sample(name, { numRuns: 300, seed: 8 });
    const typed = (quote: string, before = ""): string[] =>
      names.map((each) => {
        const candidate = bashCandidate(before + each, at(`xcache get ${quote}${before}`));
        return candidate === undefined ? "skipped" : `${before}${quote}${candidate}${quote}`;
      });
    for (const [quote, before] of [
      ["", ""],
      ["", "a:"],
      ["'", ""],
      ['"', ""],
    ] as const) {
      const words = typed(quote, before).map((each) => each || "''");
      const { stdout } = await promisify(execFile)("bash", [
        "--norc",
        "-c",
        `printf '%s\\0' ${words.join(" ")}`,
      ]);
      const expected = names.map((each, i) => (words[i] === "skipped" ? "skipped" : before + each));
      expect(stdout.split("\0").slice(0, -1)).toEqual(expected);
    }
  });
});
