// The migration pages name every public member of the installed libraries.
import { join } from "node:path";
import { createClient } from "@redis/client";
import { BentoCache } from "bentocache";
import { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { ROOT, readPage } from "./pages.ts";

const page = readPage("docs/migration/cache-manager.md");

/** Where the package declares what it exports. */
function declarationsOf(library: string): string {
  const { types } = JSON.parse(readPage(`node_modules/${library}/package.json`)) as { types: string };
  return join(ROOT, "node_modules", library, types);
}

const program = ts.createProgram(["keyv", "cache-manager"].map(declarationsOf), {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  // Only names are asked for, and those of the language itself are not among them.
  noLib: true,
  types: [],
});
const checker = program.getTypeChecker();

function exportsOf(library: string): ts.Symbol[] {
  const module = checker.getSymbolAtLocation(program.getSourceFile(declarationsOf(library))!)!;
  return checker
    .getExportsOfModule(module)
    .filter(({ name }) => name !== "default")
    .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
}

/** What can be imported and called, not only referred to as a type. */
const valuesOf = (library: string): string[] =>
  exportsOf(library)
    .filter(({ flags }) => flags & ts.SymbolFlags.Value)
    .map(({ name }) => name);

const isPublic = ({ name, declarations = [] }: ts.Symbol): boolean =>
  !name.startsWith("_") &&
  !declarations.some(
    (declaration) =>
      ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.NonPublicAccessibilityModifier,
  );

/** The public members of an exported type, inherited ones among them. */
function membersOf(library: string, type: string): string[] {
  const symbol = exportsOf(library).find(({ name }) => name === type)!;
  return checker
    .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    .filter(isPublic)
    .map(({ name }) => name);
}

const cellsOf = (row: string): string[] =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The column of a library in the table under a heading. */
function columnOf(heading: string, library: string): string[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const [head = [], , ...rows] = section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map(cellsOf);
  return rows.map((cells) => cells[head.indexOf(library)] ?? "");
}

/** What a piece of code is about: `name`, `name(...)` or `new name(...)`. */
const NAME = /^(?:new )?(\w+)/;
const EVENT = /^on\("(\w+)"\)$/;

/** How many cells have code about each of the names. */
function cellsAbout(names: readonly string[], cells: readonly string[], about: RegExp) {
  const found = cells.map((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => about.exec(code!)?.[1]),
  );
  return names.map((name) => [name, found.filter((inCell) => inCell.includes(name)).length]);
}

/** In one row and no more, so that none can be taken out unnoticed. */
const once = (names: readonly string[]) => names.map((name) => [name, 1]);

describe("docs/migration/cache-manager.md", () => {
  const keyvOptions = membersOf("keyv", "KeyvOptions");
  // Options that are properties as well stand with the options.
  const keyvMembers = membersOf("keyv", "Keyv").filter((name) => !keyvOptions.includes(name));

  it.each([
    ["cache-manager", [...valuesOf("cache-manager"), ...membersOf("cache-manager", "Cache")]],
    ["Keyv", [...valuesOf("keyv"), ...keyvMembers]],
  ])("has one row for each member of %s", (library, names) => {
    expect(names.length).toBeGreaterThan(10);
    expect(cellsAbout(names, columnOf("API mapping", library), NAME)).toEqual(once(names));
  });

  it.each([
    ["cache-manager", membersOf("cache-manager", "CreateCacheOptions")],
    ["Keyv", keyvOptions],
  ])("has one row for each option of %s", (library, names) => {
    expect(names.length).toBeGreaterThan(5);
    expect(cellsAbout(names, columnOf("Options", library), NAME)).toEqual(once(names));
  });

  it("has one row for each event of cache-manager", () => {
    const names = membersOf("cache-manager", "Events");
    expect(names.length).toBeGreaterThan(5);
    expect(cellsAbout(names, columnOf("Events", "cache-manager"), EVENT)).toEqual(once(names));
  });

  it.each(["API mapping", "Options", "Events"])("says under %s what each is in xcache", (heading) => {
    expect(columnOf(heading, "xcache")).not.toContain("");
  });
});

/** Names in code spans of the first column of a page's tables. */
const namedOn = (path: string): ReadonlySet<string> =>
  new Set(
    readPage(path)
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .flatMap((line) => [...(cellsOf(line)[0] ?? "").matchAll(/`([^`]+)`/g)])
      .flatMap(([, code]) => code!.match(/\w+/g) ?? []),
  );

/** The public members of a class, as it is at runtime. */
const ownMembers = (type: { readonly prototype: object }): string[] =>
  Object.getOwnPropertyNames(type.prototype).filter((name) => name !== "constructor");

describe("docs/migration/bentocache.md", () => {
  it("names every member of BentoCache", () => {
    const named = namedOn("docs/migration/bentocache.md");
    const members = ownMembers(BentoCache);
    expect(members.length).toBeGreaterThan(15);
    expect(members.filter((name) => !named.has(name))).toEqual([]);
  });
});

describe("docs/migration/lru-cache.md", () => {
  it("names every method of LRUCache", () => {
    const named = namedOn("docs/migration/lru-cache.md");
    const members = ownMembers(LRUCache).filter((name) => name !== "perf");
    expect(members.length).toBeGreaterThan(20);
    expect(members.filter((name) => !named.has(name))).toEqual([]);
  });
});

describe("docs/migration/redis-clients.md", () => {
  it("maps commands that both clients have", () => {
    const commands = [...namedOn("docs/migration/redis-clients.md")].filter((word) =>
      /^[A-Z]{3,}$/.test(word),
    );
    const notCommands = ["MATCH", "JSON"];
    const asked = commands.filter((word) => !notCommands.includes(word));
    expect(asked.length).toBeGreaterThan(10);
    const client = createClient();
    const missing = asked.filter(
      (command) =>
        !(command.toLowerCase() in Redis.prototype) ||
        !(command in client || command.toLowerCase() in client),
    );
    expect(missing).toEqual([]);
  });
});
