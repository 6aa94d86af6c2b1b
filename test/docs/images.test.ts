// The charts and diagrams of the docs are those that scripts/docs/images.mjs makes of bench/results today.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { images } from "../../scripts/docs/images.mjs";
import { pages, ROOT, readPage } from "./pages.ts";

const made: Readonly<Record<string, string>> = images();

describe("the images of the docs", () => {
  it.each(Object.keys(made))("%s is up to date: else run `npm run docs:images`", (path) => {
    expect(readPage(path)).toBe(made[path]);
  });

  it("have no chart that nothing makes", () => {
    const there = readdirSync(join(ROOT, "docs/images/charts")).map((name) => `docs/images/charts/${name}`);
    expect(there.filter((path) => !(path in made))).toEqual([]);
  });

  it.each(Object.keys(made))("%s is shown on a page", (path) => {
    const shown = path.replace("docs/", "");
    expect(pages.some((page) => readPage(page).includes(shown))).toBe(true);
  });
});
