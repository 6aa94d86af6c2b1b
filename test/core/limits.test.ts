// docs/reference/limits.md agrees with the code.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";
import { createCodec } from "../../src/codec/codec.ts";
import { resolveConfig } from "../../src/config/resolve.ts";
import { glob } from "../../src/core/glob/glob.ts";
import { requireKey } from "../../src/core/keys.ts";
import { argumentKeys } from "../../src/functions/argument-key.ts";
import { fuzzySearch } from "../../src/search/fuzzy.ts";

const page = readFileSync(new URL("../../docs/reference/limits.md", import.meta.url), "utf8");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .slice(1)
  .map((line) => line.split("|").map((cell) => cell.trim()));

const codec = createCodec();
const key = argumentKeys("f");

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

/** An item as large as the limit, or larger. */
const attempts: readonly ((limit: number) => unknown)[] = [
  (bytes) => requireKey("k".repeat(bytes)),
  (bytes) => resolveConfig({ keyPrefix: "k".repeat(bytes) }),
  (characters) => glob("a".repeat(characters)),
  (characters) => fuzzySearch([], "a".repeat(characters)),
  (words) => fuzzySearch([], "a ".repeat(words)),
  // A header of five bytes, and the text.
  (bytes) => codec.encode("x".repeat(bytes - 5)),
  (objects) => codec.encode(new Array(objects - 1).fill([])),
  (levels) => codec.encode(nested(levels)),
  // An object and two parts, one of which is the text.
  (characters) => key([["x".repeat(characters - 128 - 16), 1]]),
  (levels) => key([nested(levels)]),
  (entries) => new MemoryBackend({ maxEntries: entries }),
];

describe("docs/reference/limits.md", () => {
  it("has a row for each limit tested here", () => {
    expect(rows).toHaveLength(attempts.length);
  });

  it.each(rows.map(([, what, limit, code], at) => [what, limit, code, at] as const))(
    "is right about %s: %s",
    async (_, shown, code, at) => {
      const limit = Number(/[\d,]+/.exec(shown ?? "")?.[0].replaceAll(",", ""));
      const attempt = async (size: number): Promise<unknown> => attempts[at]?.(size);
      await attempt(limit);
      await expect(attempt(limit + 1)).rejects.toMatchObject({ code: code?.replaceAll("`", "") });
    },
  );
});
