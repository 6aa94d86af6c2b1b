// The site of docs/: its sidebar, its anchors, its links out of docs/, and the entry points of its API reference.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { leaving, slugOf } from "../../docs/.vitepress/links.ts";
import { sidebar } from "../../docs/.vitepress/sidebar.ts";
import { entryPoints } from "../../scripts/docs/site.mjs";
import { anchorsOf } from "../support/markdown.ts";
import { pages, ROOT } from "./pages.ts";

describe("the sidebar", () => {
  const linked = sidebar.flatMap(({ items }) => items.map(({ link }) => `docs${link}.md`));

  it("has every page of docs/ but the first, once", () => {
    const there = pages.filter((page) => page.startsWith("docs/") && page !== "docs/index.md");
    expect([...linked].sort()).toEqual([...there].sort());
  });
});

describe("the anchors of the site", () => {
  it.each([
    "The `get` call",
    "node:http",
    "How old an answer may be",
    "What the server's user must be allowed",
  ])("of %s are those of the repository", (heading) => {
    const text = heading.replaceAll("`", "");
    expect([...anchorsOf(`## ${heading}`)]).toEqual([slugOf(text)]);
  });
});

describe("a link of a page", () => {
  it.each([
    ["guide/http.md", "../../ops/grafana/xcache.json", "ops/grafana/xcache.json"],
    ["index.md", "../README.md#use", "README.md#use"],
    ["guide/http.md", "kv.md#how-old", undefined],
    ["guide/http.md", "../reference/errors.md", undefined],
    ["guide/http.md", "https://example.org/../x", undefined],
    ["guide/http.md", "#here", undefined],
  ])("of %s to %s leaves docs/ for %s", (page, target, expected) => {
    expect(leaving(page, target)).toBe(expected);
  });
});

describe("the API reference", () => {
  it("has every entry point of the package", () => {
    expect(entryPoints()).toContain("src/index.ts");
    expect(entryPoints().filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
