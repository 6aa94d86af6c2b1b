// Epochs: the numbers that show whether something read from a slot can still be trusted.
import { describe, expect, test } from "vitest";
import { SlotTable } from "../../../../src/backends/kv/cluster/slot-table.ts";

describe("an epoch", () => {
  test("stays the same while neither the slot's owner nor the connection changes", () => {
    const table = new SlotTable<string>();
    table.assign(7, "one");
    const epoch = table.epoch(7, 11);
    table.assign(7, "one");
    table.assign(8, "two");
    expect(table.epoch(7, 11)).toBe(epoch);
    expect(epoch).toBeGreaterThan(0);
  });

  test("differs after the slot moved away and came back, even if nobody asked meanwhile", () => {
    const table = new SlotTable<string>();
    table.assign(7, "one");
    const epoch = table.epoch(7, 11);
    table.assign(7, "two");
    table.assign(7, "one");
    expect(table.epoch(7, 11)).not.toBe(epoch);
  });

  test("differs with another connection, and with the first one again", () => {
    const table = new SlotTable<string>();
    table.assign(7, "one");
    const epochs = [table.epoch(7, 11), table.epoch(7, 12), table.epoch(7, 11)];
    expect(new Set(epochs).size).toBe(3);
  });

  test("is 0 if no connection is trusted, and the same again once it is", () => {
    const table = new SlotTable<string>();
    table.assign(7, "one");
    const epoch = table.epoch(7, 11);
    expect(table.epoch(7, 0)).toBe(0);
    expect(table.epoch(7, 11)).toBe(epoch);
  });

  test("of one table never equals that of another", () => {
    const [table, another] = [new SlotTable<string>(), new SlotTable<string>()];
    expect(table.epoch(7, 11)).not.toBe(another.epoch(7, 11));
  });
});

describe("reassigning a slot", () => {
  test("reports once whether somebody relied on it", () => {
    const table = new SlotTable<string>();
    expect(table.assign(7, "one")).toBe(false);
    table.epoch(7, 11);
    expect([table.assign(7, "one"), table.assign(7, "two"), table.assign(7, "three")]).toEqual([
      false,
      true,
      false,
    ]);
  });

  test("changes the owners", () => {
    const table = new SlotTable<string>();
    table.assign(9, "one");
    table.assign(3, "two");
    table.assign(5, "one");
    expect([...table.owners()]).toEqual(["two", "one"]);
    expect(table.firstOf((owner) => owner === "one")).toBe(5);
    expect(table.firstOf((owner) => owner === "three")).toBeUndefined();
    expect(table.owner(4)).toBeUndefined();
  });
});
