// Figures in the docs are those of the benchmark reports, to two digits.
import { describe, expect, it } from "vitest";
import { readPage } from "./pages.ts";

const cellsOf = (row: string): string[] =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

/** What stands under the heading that begins so. */
function sectionOf(page: string, heading: string): string {
  const sections = readPage(page).split(/^## /m);
  return sections.find((part) => part.startsWith(heading)) ?? "";
}

/** The rows of the tables of a page, by their first cell. */
function rowsOf(text: string): Map<string, string[]> {
  const rows = text.split("\n").filter((line) => line.startsWith("|"));
  return new Map(rows.map(cellsOf).map((cells) => [cells[0] ?? "", cells]));
}

/** Microseconds a call of a library, from the section of a report whose heading begins so. */
function measured(report: string, heading: string, library: string): string {
  const section = sectionOf(`bench/results/${report}.md`, heading);
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  const rows = lines.map(cellsOf);
  const row = rows.find(([name]) => name?.startsWith(`${library} `));
  const amount = Number(row?.[1]) / (rows[0]?.[1]?.startsWith("ns") ? 1_000 : 1);
  return String(Number(amount.toPrecision(2)));
}

describe("the table of the README", () => {
  const rows = rowsOf(sectionOf("README.md", "Comparison"));
  const libraries = (rows.get("") ?? []).slice(1).map((cell) => cell.split(" ")[0]!.toLowerCase());

  it.each([
    ["hit in a full cache in memory, values shared", "full", "getOrSet hit, full cache of 100,000"],
    ["read from Redis, 64 in flight", "kv", "get, 64 in flight"],
  ])("tells what was measured as %s", (name, report, heading) => {
    const shown = (rows.get(name) ?? []).slice(1).map((cell) => cell.replace(/ µs$/, ""));
    const expected = libraries.map((library) =>
      library === "fusioncache" ? "" : measured(report, heading, library),
    );
    expect(expected.length).toBe(7);
    expect(shown.map((cell) => (cell === "" ? "" : String(Number(cell))))).toEqual(expected);
  });
});

describe("docs/guide/choosing-a-store.md", () => {
  it.each([
    ['memory, `values: "shared"`', "memory", "get hit, awaited, shared values"],
    ["memory, copies", "memory", "get hit, awaited, copied values"],
    ["near tier over Redis, `getOrSet`, shared", "kv", "getOrSet hit in the near tier"],
    ["Redis", "kv", "get, 64 in flight"],
    ["memcached", "memcached", "get, 64 in flight"],
    ["disk", "disk", "get, 64 in flight"],
  ])("tells what was measured as %s", (name, report, heading) => {
    const shown = rowsOf(sectionOf("docs/guide/choosing-a-store.md", "Read latency by store")).get(name)?.[1];
    expect(String(Number(shown))).toBe(measured(report, heading, "xcache"));
  });
});

describe("docs/guide/feed.md", () => {
  const plain = (cell: string): string =>
    cell.replaceAll("`", "").replace(/^([\d,]+)$/, (number) => number.replaceAll(",", ""));

  it.each([
    ["postgresql", "Staleness", 13],
    ["postgresql", "Hit rate", 4],
    ["postgresql", "Writers", 4],
    ["mariadb", "Staleness", 12],
  ])("has only what the run on %s measured as %s", (database, heading, rows) => {
    const figures = sectionOf("docs/guide/feed.md", "Figures");
    const report = rowsOf(sectionOf(`bench/results/feed-${database}.md`, heading));
    const page = rowsOf(figures.split("MariaDB")[database === "mariadb" ? 1 : 0] ?? "");
    const measured = [...report].slice(2);
    expect(report.size).toBe(rows);
    for (const [name, cells] of measured) {
      const shown = [...page].find(([first]) => plain(first) === plain(name))?.[1] ?? [];
      expect(shown.length, name).toBeGreaterThan(3);
      for (const cell of shown) expect(cells.map(plain)).toContain(plain(cell));
    }
  });
});
