import { describe, expect, test, vi } from "vitest";
import { Page } from "../../../src/backends/memory/layout/page.ts";

vi.mock("../../../src/core/backend-options.ts", () => ({ MOST_ENTRIES: 100 }));

const HOST = {
  unchecked: 1_000_000,
  checkedValue: () => undefined,
};

describe("parked keys", () => {
  test("do not take the room of entries in a Map at its maximum size", () => {
    const page = new Page(HOST);
    for (let at = 0; at < 99; at++) page.add(`k${at}`, at);
    for (let at = 0; at < 30; at++) page.park(`k${at}`);
    const largest = vi.spyOn(Map.prototype, "set");
    for (let at = 0; at < 31; at++) page.add(`new ${at}`, at);
    const sizes = largest.mock.contexts.map((map) => (map as Map<unknown, unknown>).size);
    largest.mockRestore();
    expect(sizes).toHaveLength(31);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(100);
    expect(page.size).toBe(100);
    expect([page.held("k0"), page.held("k30"), page.held("new 30")]).toEqual([undefined, 30, 30]);
  });
});
