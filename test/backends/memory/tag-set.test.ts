import { describe, expect, test } from "vitest";
import { TagRing } from "../../../src/backends/memory/tag-set.ts";

describe("a seal", () => {
  test("is not needed without tags", () => {
    expect(new TagRing().tagSetFor([])).toBeUndefined();
  });

  test("lives until one of its tags is invalidated, and never again", () => {
    for (const tag of ["a", "b", "c"]) {
      const ring = new TagRing();
      const tagSet = ring.tagSetFor(["a", "b", "c"]);
      ring.invalidate("d");
      expect(tagSet?.isLive()).toBe(true);
      ring.invalidate(tag);
      expect(tagSet?.isLive()).toBe(false);
      ring.tagSetFor([tag]);
      expect(tagSet?.isLive()).toBe(false);
    }
  });

  test("made after an invalidation lives until the next one", () => {
    const ring = new TagRing();
    const before = ring.tagSetFor(["a", "b"]);
    ring.invalidate("a");
    const after = ring.tagSetFor(["a", "b"]);
    expect([before?.isLive(), after?.isLive()]).toEqual([false, true]);
    ring.invalidate("b");
    expect([before?.isLive(), after?.isLive()]).toEqual([false, false]);
  });

  test("dies with every other that has the tag, and with no other", () => {
    const ring = new TagRing();
    const tagSets = [["a"], ["a", "b"], ["b"], ["b", "a"], ["c"]].map((tags) => ring.tagSetFor(tags));
    ring.invalidate("a");
    expect(tagSets.map((tagSet) => tagSet?.isLive())).toEqual([false, false, true, false, true]);
  });

  test("lists the tags it was made of, whatever becomes of the list", () => {
    const tags = ["a", "b"];
    const tagSet = new TagRing().tagSetFor(tags);
    tags.push("c");
    expect(tagSet?.tags).toEqual(["a", "b"]);
  });

  test("is shared by entries stored one after the other under the same tags", () => {
    const ring = new TagRing();
    const tagSet = ring.tagSetFor(["a", "b"]);
    expect(ring.tagSetFor(["a", "b"])).toBe(tagSet);
    for (const tags of [["a"], ["b", "a"], ["a", "b", "c"], ["a", "c"]]) {
      const other = ring.tagSetFor(tags);
      expect([other === tagSet, other?.tags]).toEqual([false, tags]);
    }
  });
});

test("a tag of one ring is not that of another", () => {
  const ring = new TagRing();
  const other = new TagRing();
  const tagSets = [ring.tagSetFor(["a"]), other.tagSetFor(["a"])];
  other.invalidate("a");
  expect(tagSets.map((tagSet) => tagSet?.isLive())).toEqual([true, false]);
});
