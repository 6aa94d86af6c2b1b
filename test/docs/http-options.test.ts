// docs/reference/http-options.md and the options of the HTTP cache say the same.
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { checkOptions } from "../../src/web/engine/options.ts";
import { XCache } from "../../src/xcache.ts";
import { readPage } from "./pages.ts";

const source = ts.createSourceFile(
  "options.ts",
  readPage("src/web/engine/options.ts"),
  ts.ScriptTarget.Latest,
  true,
);
const page = readPage("docs/reference/http-options.md");

/** The cells of a row; a bar inside of one is written `\|`. */
const cellsOf = (row: string): string[] =>
  row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());

function membersOf(name: string): Map<string, string> {
  const declaration = source.statements
    .filter(ts.isInterfaceDeclaration)
    .find((statement) => statement.name.text === name);
  const properties = declaration?.members.filter(ts.isPropertySignature) ?? [];
  return new Map(
    properties.map((member) => [
      member.name.getText(source),
      (member.type?.getText(source) ?? "").replace(/\s+/g, " ").replaceAll("|", "\\|"),
    ]),
  );
}

const defaults: Readonly<Record<string, unknown>> = {
  ...checkOptions({ cache: new XCache({ kvUrl: "memory://" }) }),
};

function shownDefault(option: string): string {
  if (option === "cache") return "required";
  const value = defaults[option];
  if (value === undefined) return "none";
  return `\`${JSON.stringify(value instanceof Set ? [...value] : value)}\``;
}

describe("docs/reference/http-options.md", () => {
  const rows = page
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map(cellsOf);

  it("has one row for each option, with its type and its default, and no other", () => {
    const expected = [...membersOf("HttpCacheOptions")].map(([option, type]) => [
      `\`${option}\``,
      `\`${type}\``,
      shownDefault(option),
    ]);
    expect(expected.length).toBeGreaterThan(20);
    expect(rows.map((cells) => cells.slice(0, 3))).toEqual(expected);
  });

  it("says something of each", () => {
    expect(rows.filter((cells) => (cells[3] ?? "") === "")).toEqual([]);
  });
});
