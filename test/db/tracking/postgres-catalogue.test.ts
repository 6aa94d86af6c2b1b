// How far the functions of a name are trusted, by what pg_proc says of all of them.
import { describe, expect, test } from "vitest";
import { trustOf, trustsIn } from "../../../src/db/tracking/postgres-catalogue.ts";

const DATABASE = { i: ["i", "f", "database"], s: ["s", "f", "database"], v: ["v", "f", "database"] };
const EXTENSION = { i: ["i", "f", "extension"], s: ["s", "f", "extension"], v: ["v", "f", "extension"] };
const OWN = { i: ["i", "f", "own"], s: ["s", "f", "own"], v: ["v", "f", "own"] };
const aggregateOf = (origin: string) => ["i", "a", origin];

describe("functions of one name", () => {
  test.each([
    ["absent", []],
    ["immutable", [DATABASE.i, EXTENSION.i, OWN.i, aggregateOf("database")]],
    ["stable", [DATABASE.i, DATABASE.s, EXTENSION.s, OWN.i]],
    ["stable", [aggregateOf("extension")]],
    ["built-in", [DATABASE.i, DATABASE.v]],
    ["built-in", [EXTENSION.v, OWN.i]],
    ["own", [DATABASE.i, OWN.s]],
    ["own", [OWN.v]],
    ["own", [DATABASE.i, aggregateOf("own")]],
    ["own", [["i", "a"]]],
    ["own", [["v"]]],
  ] as const)("are %s: %j", (trust, functions) => {
    expect(trustOf(functions)).toBe(trust);
  });

  test("are told apart by their names", () => {
    const text = [
      "lower\u001ei\u001ef\u001edatabase",
      "lower\u001es\u001ef\u001eown",
      "upper\u001ei\u001ef\u001edatabase",
    ];
    expect([...trustsIn(text.join("\u001f"), ["lower", "upper", "none"])]).toEqual([
      ["lower", "own"],
      ["upper", "immutable"],
      ["none", "absent"],
    ]);
    expect([...trustsIn("", ["none"])]).toEqual([["none", "absent"]]);
  });
});
