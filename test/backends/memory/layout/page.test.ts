import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { Box } from "../../../../src/backends/memory/layout/box.ts";
import { Page, type PageHost } from "../../../../src/backends/memory/layout/page.ts";
import { expectSame } from "../../../support/same.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** Answers every lookup with the same text and records the calls. */
class Host implements PageHost {
  unchecked = 100;
  readonly asked: string[] = [];

  checkedValue(_page: Page, key: string): unknown {
    this.asked.push(`look at ${key}`);
    return "seen by the host";
  }
}

function open(keys: readonly string[] = []): { host: Host; page: Page } {
  const host = new Host();
  const page = new Page(host);
  for (const key of keys) page.add(key, `value of ${key}`);
  return { host, page };
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => `k${at}`);

describe("a peek", () => {
  test("that needs no check returns the value without asking, as often as the host allows", () => {
    const { host, page } = open(["a", "b"]);
    host.unchecked = 3;
    expect([page.peek("a"), page.peek("b"), page.peek("a")]).toEqual([
      "value of a",
      "value of b",
      "value of a",
    ]);
    expect(host.asked).toEqual([]);
    expect(page.peek("b")).toBe("seen by the host");
    expect(host.asked).toEqual(["look at b"]);
  });

  test("at a box is always answered by the host", () => {
    const { host, page } = open();
    page.add("a", new Box(1, 0, NEVER));
    expect(page.peek("a")).toBe("seen by the host");
    expect(host.asked).toEqual(["look at a"]);
  });

  test("finds values that are false, empty or null", () => {
    const { page } = open();
    for (const value of [false, 0, "", null]) {
      page.add(String(value), value);
      expect(page.peek(String(value))).toBe(value);
    }
  });

  test("at a key that is absent, or parked, asks nobody", () => {
    const { host, page } = open(["a", "b"]);
    host.unchecked = 0;
    page.park("a");
    expect([page.peek("a"), page.peek("c")]).toEqual([undefined, undefined]);
    expect(host.asked).toEqual([]);
  });
});

describe("a page", () => {
  test("holds values and boxes as stored, the latest of a key", () => {
    const { page } = open(["a"]);
    const box = new Box(1, 0, NEVER);
    expect(page.held("a")).toBe("value of a");
    page.replace("a", box);
    expect(page.held("a")).toBe(box);
    expect(page.held("b")).toBeUndefined();
    expect(page.size).toBe(1);
  });

  test("has no place for a deleted key", () => {
    const { page } = open(["a", "b"]);
    page.delete("a");
    expect([page.size, page.held("a"), [...page.keys()]]).toEqual([1, undefined, ["b"]]);
  });
});

describe("a parked key", () => {
  test("is absent: not counted, not held, not iterated", () => {
    const { page } = open(["a", "b", "c"]);
    page.park("b");
    expect([page.size, page.held("b"), [...page.keys()]]).toEqual([2, undefined, ["a", "c"]]);
  });

  test("comes back as a new key", () => {
    const { page } = open(["a", "b"]);
    page.park("b");
    page.add("b", "back");
    expect([page.size, page.held("b"), [...page.keys()].toSorted()]).toEqual([2, "back", ["a", "b"]]);
    page.park("b");
    expect([page.size, page.held("b")]).toEqual([1, undefined]);
  });

  test("that comes back is not deleted with the others", () => {
    const { page } = open(["stays", ...numbered(300)]);
    page.park("k0");
    page.add("k0", "back");
    for (const key of numbered(300).slice(1)) page.park(key);
    expect([page.size, page.held("k0"), page.held("stays")]).toEqual([2, "back", "value of stays"]);
  });

  test("that was the last one leaves nothing behind", () => {
    const { page } = open(["a", "b"]);
    page.park("a");
    page.park("b");
    expect([page.size, [...page.keys()]]).toEqual([0, []]);
    expect(page.retire().next().done).toBe(true);
    page.add("a", 1);
    expect([page.size, [...page.keys()]]).toEqual([1, ["a"]]);
  });

  test("is removed from the Map together with others, once there are more than 64 and more than one in 64 keys", () => {
    for (const [keys, most] of [
      [100, 65],
      [6_400, 164],
    ] as const) {
      const { page } = open(numbered(keys));
      const deleted = vi.spyOn(Map.prototype, "delete");
      for (const key of numbered(most)) page.park(key);
      const before = deleted.mock.calls.length;
      page.park(`k${most}`);
      const after = deleted.mock.calls.length;
      vi.restoreAllMocks();
      expect([before, after]).toEqual([0, most + 1]);
      expect(page.size).toBe(keys - most - 1);
    }
  });

  test("that is set and parked over and over is never deleted", () => {
    const { page } = open(numbered(100));
    const deleted = vi.spyOn(Map.prototype, "delete");
    for (let at = 0; at < 10_000; at++) {
      page.park("k7");
      page.add("k7", at);
    }
    const deletions = deleted.mock.calls.length;
    vi.restoreAllMocks();
    expect(deletions).toBe(0);
    expect([page.size, page.held("k7")]).toEqual([100, 9_999]);
  });
});

describe("an iteration over the keys", () => {
  test("visits every key that stays once, whatever is added and removed meanwhile, and ends", () => {
    const key = fc.integer({ min: 0, max: 150 }).map((at) => `k${at}`);
    const change = fc.record({ do: fc.constantFrom("add", "park", "delete"), key });
    const changes = fc.array(fc.array(change, { maxLength: 6, size: "max" }), {
      maxLength: 200,
      size: "max",
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 150 }), changes, (count, todo) => {
        const { page } = open(numbered(count));
        const present = new Set(numbered(count));
        const stayed = new Set(present);
        const met: string[] = [];
        for (const at of page.keys()) {
          expectSame(present.has(at), true);
          met.push(at);
          for (const step of todo[met.length] ?? [{ do: "add", key: `new ${met.length}` }]) {
            if (step.do === "add") {
              if (present.has(step.key)) page.replace(step.key, 1);
              else page.add(step.key, 1);
              present.add(step.key);
            } else if (present.has(step.key)) {
              if (step.do === "park") page.park(step.key);
              else page.delete(step.key);
              present.delete(step.key);
              stayed.delete(step.key);
            }
          }
        }
        const counted = new Map<string, number>();
        for (const at of met) counted.set(at, (counted.get(at) ?? 0) + 1);
        for (const at of stayed) expectSame(counted.get(at), 1);
        expect(met.length).toBeLessThanOrEqual(count);
        expect([...page.keys()].toSorted()).toEqual([...present].toSorted());
        expect(page.size).toBe(present.size);
      }),
    );
  });

  test("ends when the page starts over", () => {
    const { page } = open(["a", "b", "c"]);
    const keys = page.keys();
    expect(keys.next().value).toBe("a");
    page.retire();
    page.add("b", "of another life");
    expect(keys.next().done).toBe(true);
  });
});

describe("a page that starts over", () => {
  test("is empty immediately and hands over its former keys", () => {
    const { page } = open(numbered(5));
    page.park("k1");
    page.park("k3");
    const keys = page.retire();
    expect([page.size, page.held("k0"), [...page.keys()]]).toEqual([0, undefined, []]);
    const handed = new Set<string>();
    for (let next = keys.next(); next.done !== true; next = keys.next()) handed.add(next.value);
    for (const key of ["k0", "k2", "k4"]) expect(handed).toContain(key);
  });

  test("can be used while its old keys are still being taken", () => {
    const { page } = open(numbered(3));
    const keys = page.retire();
    page.add("k1", "new");
    page.add("other", "new");
    expect([keys.next().value, keys.next().value, keys.next().value]).toEqual(["k0", "k1", "k2"]);
    expect(keys.next().done).toBe(true);
    expect([page.size, page.held("k1"), page.held("k0")]).toEqual([2, "new", undefined]);
  });

  test("does not count keys that were parked before", () => {
    const { page } = open(["a", "b", "c"]);
    page.park("a");
    page.retire();
    page.add("x", 1);
    page.add("a", 1);
    expect(page.size).toBe(2);
  });
});
