import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { holdProcess, releaseProcess } from "../../src/core/event-loop.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("one timer keeps the process alive, however many callers wait, and is released shortly after the last", () => {
  for (let at = 0; at < 5; at++) holdProcess();
  expect(vi.getTimerCount()).toBe(1);
  for (let at = 0; at < 4; at++) releaseProcess();
  vi.advanceTimersByTime(10_000);
  expect(vi.getTimerCount()).toBe(1);
  releaseProcess();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(50);
  expect(vi.getTimerCount()).toBe(0);
});

test("a caller who waits again within that time reuses the timer", () => {
  holdProcess();
  releaseProcess();
  vi.advanceTimersByTime(20);
  holdProcess();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(1);
  releaseProcess();
  vi.advanceTimersByTime(100);
  expect(vi.getTimerCount()).toBe(0);
});
