import { describe, expect, test } from "vitest";
import { FewKeys } from "../../src/core/few-keys.ts";
import { expectSame } from "../support/same.ts";

describe("a map of few keys", () => {
  test("finds what was set, until it is deleted", () => {
    const keys = new FewKeys<number>();
    expect(keys.get("a")).toBeUndefined();
    keys.set("a", 1);
    keys.set("b", 2);
    expect([keys.get("a"), keys.get("b"), keys.get("c")]).toEqual([1, 2, undefined]);
    keys.delete("a");
    keys.delete("c");
    expect([keys.get("a"), keys.get("b")]).toEqual([undefined, 2]);
    expect([...keys.values()]).toEqual([2]);
  });

  test("holds one value per key, whichever key came first", () => {
    const keys = new FewKeys<number>();
    keys.set("a", 1);
    keys.set("b", 2);
    keys.delete("a");
    keys.set("b", 3);
    keys.set("c", 4);
    expect([...keys.values()].sort()).toEqual([3, 4]);
    keys.delete("b");
    expect(keys.get("b")).toBeUndefined();
  });

  test("behaves as a Map, whatever is done in whatever order", () => {
    const keys = new FewKeys<number>();
    const model = new Map<string, number>();
    let random = 1;
    for (let step = 0; step < 2_000; step++) {
      random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
      const key = `k${(random >>> 16) % 4}`;
      if ((random >>> 24) % 2 === 0) {
        keys.set(key, step);
        model.set(key, step);
      } else {
        keys.delete(key);
        model.delete(key);
      }
      for (const each of ["k0", "k1", "k2", "k3"]) expectSame(keys.get(each), model.get(each));
    }
    expect([...keys.values()].sort()).toEqual([...model.values()].sort());
  });
});
