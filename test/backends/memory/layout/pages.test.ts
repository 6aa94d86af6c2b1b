import { expect, test } from "vitest";
import type { Page, PageHost } from "../../../../src/backends/memory/layout/page.ts";
import { Pages, type RetiredKey } from "../../../../src/backends/memory/layout/pages.ts";

const HOST: PageHost = {
  unchecked: 1_000_000,
  checkedValue: () => undefined,
};

function filled(pages: Pages, ...keys: string[]): Page {
  const page = pages.open(HOST);
  for (const key of keys) page.add(key, 1);
  return page;
}

function takeAll(pages: Pages): RetiredKey[] {
  const taken: RetiredKey[] = [];
  for (let next = pages.nextRetired(); next !== undefined; next = pages.nextRetired()) taken.push(next);
  return taken;
}

test("every page has a distinct number and is found by it", () => {
  const pages = new Pages();
  const opened = Array.from({ length: 10 }, () => pages.open(HOST));
  expect(new Set(opened.map((page) => page.number)).size).toBe(10);
  for (const page of opened) expect(pages.at(page.number)).toBe(page);
  expect(pages.at(10)).toBeUndefined();
});

test("a cleared page is empty and has a new number; nothing is found under the old one", () => {
  const pages = new Pages();
  const other = filled(pages, "a");
  const page = filled(pages, "a", "b");
  const before = page.number;
  pages.retire(page);
  expect(page.size).toBe(0);
  expect(pages.at(before)).toBeUndefined();
  expect(pages.at(page.number)).toBe(page);
  expect([other.number === page.number, other.size]).toEqual([false, 1]);
});

test("the keys of cleared pages come once each, with the number that their page had", () => {
  const pages = new Pages();
  const first = filled(pages, "a", "b");
  const second = filled(pages, "a", "c");
  expect([pages.hasRetired, pages.nextRetired()]).toEqual([false, undefined]);
  const numbers = [first.number, second.number];
  pages.retire(first);
  pages.retire(second);
  first.add("d", 1);
  expect(pages.hasRetired).toBe(true);
  expect(takeAll(pages)).toEqual([
    { number: numbers[0], key: "a" },
    { number: numbers[0], key: "b" },
    { number: numbers[1], key: "a" },
    { number: numbers[1], key: "c" },
  ]);
  expect([pages.hasRetired, pages.nextRetired()]).toEqual([false, undefined]);
});

test("the number of a cleared page is free again once its keys are taken, not before", () => {
  const pages = new Pages();
  const page = filled(pages, "a", "b");
  const { number } = page;
  pages.retire(page);
  pages.nextRetired();
  pages.nextRetired();
  const early = pages.open(HOST);
  expect(early.number).not.toBe(number);
  expect(pages.nextRetired()).toBeUndefined();
  expect(pages.open(HOST).number).toBe(number);
  expect(pages.open(HOST).number).not.toBe(number);
});

test("forgetting the cleared pages frees their numbers, each once, and leaves no key to take", () => {
  const pages = new Pages();
  const cleared = [filled(pages, "a", "b"), filled(pages, "c"), filled(pages, "d")];
  for (const page of cleared) pages.retire(page);
  pages.nextRetired();
  pages.forgetRetired();
  expect([pages.hasRetired, pages.nextRetired()]).toEqual([false, undefined]);
  const opened = Array.from({ length: 5 }, () => pages.open(HOST));
  const numbers = [...cleared, ...opened].map((page) => page.number);
  expect(numbers.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  for (const page of [...cleared, ...opened]) expect(pages.at(page.number)).toBe(page);
});

test("a page that is cleared over and over needs few numbers", () => {
  const pages = new Pages();
  const page = pages.open(HOST);
  for (let round = 0; round < 100; round++) {
    page.add("a", round);
    pages.retire(page);
    expect(takeAll(pages)).toHaveLength(1);
    expect(page.number).toBeLessThan(2);
  }
});
