// The tags of rows.
import { describe, expect, test } from "vitest";
import { pointTag, type RowId, rowsTag, rowTag } from "../../../src/db/tracking/table-tags.ts";

describe("the tag of a row", () => {
  test.each([
    ["users", 42, "row:users:42"],
    ["App.Users", "42", "row:users:42"],
    ['"User"', 42n, "row:user:42"],
    ["lines", [7, "a:b%"], "row:lines:7:a%3ab%25"],
  ] as [string, RowId, string][])("of %s %s is %s", (table, id, tag) => {
    expect(rowTag(table, id)).toBe(tag);
  });

  test.each([[[]], [null], [Number.NaN], [{}], [[1, null]]])("of %j is refused", (id) => {
    expect(() => rowTag("users", id as never)).toThrow("rowTag(): id must be");
  });

  test("and that of all rows ignore schema, quotes and case", () => {
    expect(rowsTag('app."User"')).toBe("rows:user");
  });
});

describe("the row that parameters name", () => {
  const point = new Map([["id", 0]]);
  const tag = (kind: "integer" | "number" | "text" | "uuid", value: unknown) =>
    pointTag("t", [{ name: "id", kind }], point, [value]);

  test("is certain where the database prints them in the same way", () => {
    expect(tag("integer", 42)).toBe("row:t:42");
    expect(tag("number", "42")).toBe("row:t:42");
    expect(tag("integer", "-7")).toBe("row:t:-7");
    expect(tag("integer", 2n ** 62n)).toBe("row:t:4611686018427387904");
    expect(tag("text", "A b")).toBe("row:t:A b");
    expect(tag("uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF")).toBe(
      "row:t:6f9619ff-8b86-d011-b42d-00c04fc964ff",
    );
  });

  test("is not certain in another spelling, nor without a value for each column", () => {
    for (const value of ["042", " 42", "+42", "4_2", "1e3", 4.5, -0.5, true, null, undefined, new Date(0)])
      expect(tag("integer", value)).toBeUndefined();
    // Compared as doubles, these are more than one number.
    for (const value of [2 ** 53, "9007199254740993", 2n ** 62n])
      expect(tag("number", value)).toBeUndefined();
    expect(tag("uuid", "{6f9619ff8b86d011b42d00c04fc964ff}")).toBeUndefined();
    expect(pointTag("t", [{ name: "other", kind: "text" }], point, ["x"])).toBeUndefined();
  });
});
