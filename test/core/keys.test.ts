import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError, InvalidKeyError } from "../../src/core/errors.ts";
import {
  MAX_KEY_BYTES,
  requireKey,
  requireTags,
  spelling,
  TAG_GROUPS,
  tagGroup,
} from "../../src/core/keys.ts";

describe("keys", () => {
  it.each([[""], [undefined], [null], [5], [{}], [["a"]]])("rejects %j as a key", (key) => {
    expect(() => requireKey(key)).toThrow(InvalidKeyError);
  });

  it("counts the limit in bytes of UTF-8", () => {
    expect(() => requireKey("a".repeat(MAX_KEY_BYTES))).not.toThrow();
    expect(() => requireKey("a".repeat(MAX_KEY_BYTES + 1))).toThrow(/65536 bytes.*65537/);
    expect(() => requireKey("é".repeat(MAX_KEY_BYTES / 2 + 1))).toThrow(InvalidKeyError);
  });

  it("accepts one tag or a list, and drops duplicates", () => {
    expect(requireTags("a")).toEqual(["a"]);
    expect(requireTags(["a", "b", "a"])).toEqual(["a", "b"]);
    expect(() => requireTags({ a: 1 })).toThrow(ConfigError);
    expect(() => requireTags(["a", ""])).toThrow(InvalidKeyError);
  });

  it("gives no two records of any two namespaces the same name", () => {
    const name = fc.string({
      minLength: 1,
      unit: fc.constantFrom("a", "b", ":", "!", "/", "%", "t", "n", "g", "3"),
    });
    const record = fc.record({
      path: fc.array(name, { minLength: 1, maxLength: 3 }),
      kind: fc.constantFrom("entry", "tag", "namespace", "group", "own"),
      name,
    });
    const spell = ({ path, kind, name }: { path: string[]; kind: string; name: string }): string => {
      const [root = "", ...children] = path;
      const names = children.reduce((parent, child) => parent.child(child), spelling(root));
      if (kind === "entry") return names.entry(name);
      if (kind === "tag") return names.tagStamp(name);
      if (kind === "group") return names.groupStamp(name.length);
      return kind === "own" ? names.own(name) : names.namespaceStamp();
    };
    const identity = (r: { path: string[]; kind: string; name: string }): string =>
      JSON.stringify([
        r.path,
        r.kind,
        r.kind === "namespace" ? "" : r.kind === "group" ? r.name.length : r.name,
      ]);
    fc.assert(
      fc.property(record, record, (one, other) => {
        expect(spell(one) === spell(other)).toBe(identity(one) === identity(other));
      }),
      { numRuns: 2_000 },
    );
  });

  it("recovers the user's key from the stored name of an entry", () => {
    const names = spelling("my:app").child("a/b");
    fc.assert(fc.property(fc.string({ minLength: 1 }), (key) => names.keyOf(names.entry(key)) === key));
  });

  it("distributes tags over all groups, the same way in every process", () => {
    const groups = new Set(Array.from({ length: 2_000 }, (_, n) => tagGroup(`user:${n}`)));
    expect(groups.size).toBe(TAG_GROUPS);
    expect(tagGroup("users")).toBe(tagGroup("users"));
  });
});
