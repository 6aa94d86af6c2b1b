// The site of docs/: its sidebar, its anchors, its links out of docs/, and the entry points of its API reference.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apiPage, leaving, slugOf } from "../../docs/.vitepress/links.ts";
import { llmsText } from "../../docs/.vitepress/llms.ts";
import { sidebar } from "../../docs/.vitepress/sidebar.ts";
import { entryPoints } from "../../scripts/docs/site.mjs";
import { anchorsOf } from "../support/markdown.ts";
import { pages, ROOT, readPage } from "./pages.ts";

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

  it("has a page for each that a guide can link to, and for no other file", () => {
    expect(apiPage("src/index.ts")).toBe("api/modules/index.html");
    expect(apiPage("src/web/express.ts")).toBe("api/modules/web_express.html");
    expect(apiPage("src/vector/index.ts")).toBe("api/modules/vector.html");
    expect(apiPage("src/core/backend.ts")).toBeUndefined();
    expect(entryPoints().filter((path) => apiPage(path) === undefined)).toEqual([]);
  });

  it("is linked from docs/reference/api.md, entry point by entry point", () => {
    const page = readPage("docs/reference/api.md");
    expect(entryPoints().filter((path) => !page.includes(`(../../${path})`))).toEqual([]);
  });
});

describe("llms.txt", () => {
  it("names every page with what it is about", () => {
    const lines = llmsText("/").split("\n");
    for (const { link } of sidebar.flatMap(({ text, items }) => (text === "Decisions" ? [] : items)))
      expect(lines.find((line) => line.includes(`(${link}.html)`))).toMatch(/\): .{15,}/);
  });
});

describe("the words that people search for", () => {
  const guides = pages.filter((page) => page.startsWith("docs/guide/")).map(readPage);

  it.each([
    "stampede",
    "SWR",
    "thundering herd",
    "L1",
    "L2",
    "dogpile",
    "single flight",
    "request coalescing",
    "stale-while-revalidate",
    "read-through",
    "cache-aside",
    "circuit breaker",
  ])("%s is on a page of the guide", (word) => {
    expect(guides.some((text) => text.includes(word))).toBe(true);
  });
});
