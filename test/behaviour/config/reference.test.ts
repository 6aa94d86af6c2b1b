// docs/reference/configuration.md agrees with the table of fields.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { envName, type FieldName, fieldNames, fields, wireName } from "../../../src/config/schema.ts";
import type { Member } from "../../../src/config/shape.ts";
import { configFromYaml } from "../../../src/config/yaml.ts";
import { parseStoreAddress } from "../../../src/core/address/store-url.ts";
import { toSnake, toWire } from "../../../src/core/wire.ts";
import { yamlFolder } from "../../config/file.ts";

const page = readFileSync(new URL("../../../docs/reference/configuration.md", import.meta.url), "utf8");
const { file } = yamlFolder();

/** The rows of the table under a heading, without its two head lines. */
function rowsUnder(heading: string): string[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
}

function shownDefault({ default: value }: Member<unknown>): string {
  return value === undefined ? "none" : `\`${JSON.stringify(toWire(value))}\``;
}

const row = (...cells: string[]): string => `| ${cells.join(" | ")} |`;

function fieldRow(field: FieldName): string {
  const member: Member<unknown> = fields()[field];
  return row(
    `\`${wireName(field)}\``,
    `\`${field}\``,
    member.shape.expected,
    shownDefault(member),
    member.unit ?? "",
    member.shape.fromText === undefined ? "" : `\`${envName(field)}\``,
    member.description,
  );
}

function innerRows(field: FieldName): string[] {
  const parent = field === "tables" ? "tables.<name>" : wireName(field);
  return Object.entries(fields()[field].shape.members ?? {}).map(([name, member]) =>
    row(
      `\`${parent}.${toSnake(name)}\``,
      member.shape.expected,
      shownDefault(member),
      member.unit ?? "",
      member.description,
    ),
  );
}

describe("docs/reference/configuration.md", () => {
  it("has one row for each field and no other", () => {
    expect(rowsUnder("Fields")).toEqual(fieldNames().map(fieldRow));
  });

  it("has one row for each nested field and no other", () => {
    expect(rowsUnder("Nested fields")).toEqual(fieldNames().flatMap(innerRows));
  });

  it("has an example file that is valid and sets what it says", () => {
    const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    const resolved = resolveConfig(configFromYaml(file(example)));
    expect(resolved.keyPrefix).toBe("shop");
    expect(Object.keys(resolved.tables)).toEqual(["users", "prices"]);
  });

  it("shows only addresses that can be parsed", () => {
    const addresses = rowsUnder("Store addresses").map((line) => /`([^`]+)`/.exec(line)?.[1] ?? "");
    expect(addresses.length).toBeGreaterThan(10);
    for (const address of addresses) expect(() => parseStoreAddress(address), address).not.toThrow();
  });

  it("shows every kind of address", () => {
    const kinds = rowsUnder("Store addresses").map(
      (line) => parseStoreAddress(/`([^`]+)`/.exec(line)?.[1]).kind,
    );
    expect(new Set(kinds)).toEqual(
      new Set(["standalone", "cluster", "sentinel", "socket", "memcached", "memory", "file"]),
    );
  });
});
