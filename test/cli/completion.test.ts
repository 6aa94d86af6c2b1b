// Completion: what can stand at the cursor, and the script of a real shell.
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { completionPlace } from "../../src/cli/completion-place.ts";
import { bareEnvironment, installedProgram, xcache } from "./installed.ts";
import { diskUrl, testFolder, withCache } from "./store.ts";

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
  const at = (...words: string[]) => completionPlace(words).completes;

  test("commands come first, then what the command takes", () => {
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

  test("the value of a flag is what the flag takes", () => {
    expect(at("list", "--tag", "")).toBe("tags");
    expect(at("list", "-t", "a", "")).toBe("tags");
    expect(at("list", "--config", "")).toBe("files");
    expect(at("search", "--limit", "")).toEqual([]);
    expect(at("get", "--prefix", "p", "")).toBe("keys");
  });

  test("flags before it say where the store is", () => {
    const { flags } = completionPlace(["--kv-url", "memory://", "get", "--prefix=shop", ""]);
    expect([...flags]).toEqual([
      ["--kv-url", "memory://"],
      ["--prefix", "shop"],
    ]);
  });
});

test("tags and keys come live from the store, keys part by part, and what needs quoting is left out", async () => {
  const complete = async (...words: string[]) =>
    (await xcache(["complete", "--", ...words], { env: { XCACHE_KV_URL: kvUrl } })).stdout;
  expect(await complete("get", "u")).toBe("user:\n");
  expect(await complete("get", "user:1")).toBe("user:1:\n");
  expect(await complete("list", "--tag", "")).toBe("team:7\nusers\n");
  expect(await complete("sta")).toBe("stats\n");
});

test("a store that is not there completes to nothing, without a word", async () => {
  const ran = await xcache(["complete", "--", "get", ""], { env: { XCACHE_KV_URL: "redis://127.0.0.1:1" } });
  expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("bash completes a key with colons in it", { timeout: 30_000 }, async () => {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "xcache"), `#!/bin/sh\nexec "${process.execPath}" "${installedProgram()}" "$@"\n`);
  chmodSync(join(bin, "xcache"), 0o755);
  const ask = async (...words: string[]): Promise<string> => {
    // As bash itself splits the line, at colons too.
    const script = `eval "$(xcache completion bash)"
      COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
      _xcache; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = bareEnvironment({ XCACHE_KV_URL: kvUrl });
    const { stdout } = await promisify(execFile)("bash", ["--norc", "-c", script], {
      env: { ...env, PATH: `${bin}:${env.PATH}` },
    });
    return stdout;
  };
  expect(await ask("xcache", "sta")).toBe("stats\n");
  expect(await ask("xcache", "get", "user", ":", "1")).toBe("1:\n");
  expect(await ask("xcache", "list", "--tag", "te")).toBe("team:7\n");
});

test.each(["bash", "zsh", "fish"])("the script of %s asks us with all words", async (shell) => {
  const { code, stdout } = await xcache(["completion", shell]);
  expect(code).toBe(0);
  expect(stdout).toContain("xcache complete -- ");
});
