// Files and folders that the pages name are there: a file that moves takes its mentions with it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pathsOf } from "../support/markdown.ts";
import { pages, ROOT, readPage } from "./pages.ts";

describe("paths", () => {
  test.each(pages)("of %s exist", (page) => {
    const missing = pathsOf(readPage(page))
      .filter(({ target }) => !existsSync(join(ROOT, target)))
      .map(({ target, line }) => `${page}:${line} ${target}: write a path from the root of the repository`);
    expect(missing).toEqual([]);
  });

  test("are found in prose and code spans, but not in code blocks, links, URLs and package names", () => {
    const page = [
      "`src/core/clock.ts`, (test/core/) and loader.ts; the folder `bench/http`.",
      "[text](src/no.ts) https://example.org/src/no.ts `xcache/testing` @scope/test/no",
      "```",
      "src/no.ts",
      "```",
    ].join("\n");
    expect(pathsOf(page)).toEqual([
      { target: "src/core/clock.ts", line: 1 },
      { target: "test/core", line: 1 },
      { target: "loader.ts", line: 1 },
      { target: "bench/http", line: 1 },
    ]);
  });
});
