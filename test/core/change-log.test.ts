import { describe, expect, it } from "vitest";
import { ChangeLog } from "../../src/core/change-log.ts";

describe("changes while loads are in flight", () => {
  it("report a key, a tag, a pattern and everything that changed after a load began", () => {
    const changes = new ChangeLog();
    const since = changes.begin("k");
    expect(changes.touched("k", ["t"], since)).toBe(false);
    changes.key("other");
    changes.tag("other");
    changes.begin("x:1");
    changes.pattern((key) => key.startsWith("x:"));
    expect(changes.touched("k", ["t"], since)).toBe(false);
    expect(changes.touched("x:1", [], since)).toBe(true);
    changes.tag("t");
    expect(changes.touched("k", ["t"], since)).toBe(true);
    expect(changes.touched("k", [], since)).toBe(false);
    changes.key("k");
    expect(changes.touched("k", [], since)).toBe(true);
    changes.everything();
    expect(changes.touched("anything", [], since)).toBe(true);
  });

  it("do not affect a load that began later", () => {
    const changes = new ChangeLog();
    changes.begin("k");
    changes.key("k");
    const later = changes.begin("k");
    expect(changes.touched("k", [], later)).toBe(false);
  });

  it("of a parent's clear reach its children, but not the other way round", () => {
    const parent = new ChangeLog();
    const child = new ChangeLog(parent);
    const ofParent = parent.begin("key");
    const ofChild = child.begin("key");
    child.everything();
    expect(parent.touched("k", [], ofParent)).toBe(false);
    const again = child.begin("key");
    parent.everything();
    expect(child.touched("k", [], again)).toBe(true);
    expect(child.touched("k", [], ofChild)).toBe(true);
  });

  it("count as a change of everything when too many tags change during one load", () => {
    const changes = new ChangeLog();
    const since = changes.begin("k");
    for (let n = 0; n <= 100_000; n++) changes.tag(`t${n}`);
    expect(changes.touched("k", [], since)).toBe(true);
  });

  it("of any number of other keys are not mistaken for a change of this one", () => {
    const changes = new ChangeLog();
    const since = changes.begin("k");
    for (let n = 0; n <= 100_001; n++) changes.key(`k${n}`);
    expect(changes.touched("k", [], since)).toBe(false);
    changes.key("k");
    expect(changes.touched("k", [], since)).toBe(true);
  });

  it("are not remembered while no load is running", () => {
    const changes = new ChangeLog();
    const since = changes.begin("k");
    changes.key("k");
    changes.end("k");
    expect(changes.watched).toBe(false);
    expect(changes.touched("k", [], since)).toBe(false);
  });
});
