// What every cache on a failing store must do: end calls in time, lose nothing, and recover by itself.
import { expect } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { BackendError } from "../../../src/core/errors.ts";
import type { XCache } from "../../../src/xcache.ts";
import { timed } from "../opened.ts";
import { soon } from "../pace.ts";
import { until } from "../until.ts";

export const TIMEOUT_MS = 500;
/** How much longer than the deadline a call may take on a busy machine; less than another deadline, so that two are seen. */
export const SLACK_MS = 450;

export const TROUBLED: CacheConfig = {
  operationTimeout: TIMEOUT_MS / 1_000,
  // High enough that a few failures do not open the circuit and hide how each call behaves.
  circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 },
};

export const resumes = (cache: XCache): Promise<unknown> =>
  until(async () => (await cache.set("resumed", 1)) === undefined && (await cache.get("resumed")) === 1, {
    what: "the cache works again",
  });

export interface Operation {
  readonly name: string;
  call(cache: XCache): Promise<unknown>;
  /** Its outcome when the store works. */
  readonly success: unknown;
  /** Its outcome when the store cannot be used. */
  readonly failure: unknown;
  /** What holds afterwards, whatever the outcome. */
  hasEffect?(cache: XCache): Promise<void>;
}

/** Long enough to be cut in two. */
const LONG_VALUE = "x".repeat(20_000);

const typedError = expect.any(BackendError);
let keysLoaded = 0;

export const OPERATIONS: readonly Operation[] = [
  {
    name: "get",
    call: (cache) => cache.get("kept"),
    success: LONG_VALUE,
    failure: typedError,
  },
  {
    name: "set",
    call: (cache) => cache.set("set", "new"),
    success: undefined,
    failure: typedError,
    hasEffect: async (cache) => expect(["new", undefined]).toContain(await cache.get("set")),
  },
  {
    name: "delete",
    call: (cache) => cache.delete("deleted"),
    success: 1,
    failure: typedError,
    hasEffect: async (cache) => expect(await cache.get("deleted")).toBeUndefined(),
  },
  {
    name: "invalidateTags",
    call: (cache) => cache.invalidateTags(["t"]),
    success: undefined,
    failure: typedError,
    hasEffect: async (cache) => expect(await cache.get("tagged")).toBeUndefined(),
  },
  {
    name: "getOrSet",
    call: (cache) => cache.getOrSet(`loaded-${++keysLoaded}`, () => "loaded"),
    success: "loaded",
    failure: "loaded",
  },
  {
    name: "healthCheck",
    call: (cache) => cache.healthCheck(),
    success: expect.objectContaining({ isHealthy: true }),
    failure: expect.objectContaining({ isHealthy: false }),
  },
];

/** Stores what the operations are about; what is to be changed is also read, so that a near tier has it. */
export async function prepare(cache: XCache): Promise<void> {
  const store = (key: string, value: string, options?: { tags: string[] }): Promise<unknown> =>
    until(async () => (await cache.set(key, value, options)) === undefined, { what: `${key} is stored` });
  await store("kept", LONG_VALUE);
  await store("set", "old");
  await store("deleted", "old");
  await store("tagged", "old", { tags: ["t"] });
  for (const key of ["set", "deleted", "tagged"])
    for (let read = 0; read < 3; read++) expect(await cache.get(key)).toBe("old");
}

/** Calls it, and checks that it meets the deadline. */
export async function inTime(
  { name, call }: Operation,
  cache: XCache,
  mostMs = TIMEOUT_MS + soon(SLACK_MS),
): Promise<unknown> {
  const { ms, outcome } = await timed(call(cache));
  expect(ms, `milliseconds of ${name}`).toBeLessThan(mostMs);
  return outcome;
}

/** While the store cannot be used: each call fails in time, both those in flight and later ones. */
export async function expectFailures(cache: XCache): Promise<void> {
  const expectFailure = async (operation: Operation): Promise<void> =>
    expect(await inTime(operation, cache), operation.name).toEqual(operation.failure);
  await Promise.all(OPERATIONS.map(expectFailure));
  for (const operation of OPERATIONS) await expectFailure(operation);
}

/** Once it can be used again. */
export async function expectRecovery(cache: XCache): Promise<void> {
  await resumes(cache);
  for (const { hasEffect } of OPERATIONS) await hasEffect?.(cache);
}
