import { describe, expect, test } from "vitest";
import { TagRing } from "../../../src/backends/memory/tag-set.ts";

describe("a seal", () => {
  test("is not needed without tags", () => {
    expect(new TagRing().seal([])).toBeUndefined();
  });

  test("lives until one of its tags is invalidated, and never again", () => {
    for (const tag of ["a", "b", "c"]) {
      const ring = new TagRing();
      const seal = ring.seal(["a", "b", "c"]);
      ring.invalidate("d");
      expect(seal?.isLive()).toBe(true);
      ring.invalidate(tag);
      expect(seal?.isLive()).toBe(false);
      ring.seal([tag]);
      expect(seal?.isLive()).toBe(false);
    }
  });

  test("made after an invalidation lives until the next one", () => {
    const ring = new TagRing();
    const before = ring.seal(["a", "b"]);
    ring.invalidate("a");
    const after = ring.seal(["a", "b"]);
    expect([before?.isLive(), after?.isLive()]).toEqual([false, true]);
    ring.invalidate("b");
    expect([before?.isLive(), after?.isLive()]).toEqual([false, false]);
  });

  test("dies with every other that has the tag, and with none that has not", () => {
    const ring = new TagRing();
    const seals = [["a"], ["a", "b"], ["b"], ["b", "a"], ["c"]].map((tags) => ring.seal(tags));
    ring.invalidate("a");
    expect(seals.map((seal) => seal?.isLive())).toEqual([false, false, true, false, true]);
  });

  test("names the tags it was made of, whatever becomes of the list", () => {
    const tags = ["a", "b"];
    const seal = new TagRing().seal(tags);
    tags.push("c");
    expect(seal?.tags).toEqual(["a", "b"]);
  });

  test("is shared by entries stored one after the other under the same tags", () => {
    const ring = new TagRing();
    const seal = ring.seal(["a", "b"]);
    expect(ring.seal(["a", "b"])).toBe(seal);
    for (const tags of [["a"], ["b", "a"], ["a", "b", "c"], ["a", "c"]]) {
      const other = ring.seal(tags);
      expect([other === seal, other?.tags]).toEqual([false, tags]);
    }
  });
});

test("a tag of one ring is not that of another", () => {
  const ring = new TagRing();
  const other = new TagRing();
  const seals = [ring.seal(["a"]), other.seal(["a"])];
  other.invalidate("a");
  expect(seals.map((seal) => seal?.isLive())).toEqual([true, false]);
});
