// A backend that never answers: waiting calls end in time, and work again once it answers.
import { expect, test } from "vitest";
import type { KeyedRecord, SwapResult } from "../../../src/core/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import type { Namespace } from "../../../src/core/namespace.ts";
import type { StoreRecord, Token } from "../../../src/core/record.ts";
import { cacheWithClock, ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

const TERMS = { ttlMs: 3_600_000, staleMs: 0, tags: [] };
/** The store's operation_timeout. */
const TIMEOUT_MS = 1_000;
const NEVER = new Promise<never>(() => {});

type Found = StoreRecord | undefined;

class Hanging extends ReferenceBackend {
  readonly hangs = new Set<"connect" | "take" | "readMany">();
  readonly takesAfterMs: number[] = [];
  swapsAfterMs = 0;
  fault: Error | undefined;

  override connect(): Promise<void> {
    return this.hangs.has("connect") ? NEVER : super.connect();
  }

  override async take(key: string): Promise<Found> {
    if (this.hangs.has("take")) await NEVER;
    await this.#pass(this.takesAfterMs.shift());
    return super.take(key);
  }

  override async takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    if (this.fault !== undefined) throw this.fault;
    return super.takeMany(keys);
  }

  override readMany(keys: readonly string[]): Promise<readonly Found[]> {
    return this.hangs.has("readMany") ? NEVER : super.readMany(keys);
  }

  override async swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    const wait = this.swapsAfterMs;
    this.swapsAfterMs = 0;
    await this.#pass(wait);
    return super.swap(key, expected, next);
  }

  async #pass(ms = 0): Promise<void> {
    if (ms > 0) await new Promise<void>((resolve) => this.store.clock.after(ms, resolve));
  }
}

function setUp() {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock);
  const backend = new Hanging(shared);
  return { clock, shared, backend, space: openSharedStore(backend, clock, 100).namespace("p") };
}

const got = (space: Namespace, key: string): Promise<unknown> =>
  new Promise((answered, failed) => space.get(key, { answered, failed }));

const owedRemoval = async (space: Namespace, backend: Hanging): Promise<void> => {
  backend.fault = new ConnectionError("down");
  await expect(space.delete(["k"])).rejects.toThrow("down");
  backend.fault = undefined;
};

test("a delivery without an answer does not block its key for good", async () => {
  const { clock, backend, space } = setUp();
  await space.set("k", 1, TERMS);
  await owedRemoval(space, backend);
  backend.hangs.add("take");
  const waiting = expect(got(space, "k")).rejects.toBeInstanceOf(OperationTimeoutError);
  await clock.advance(TIMEOUT_MS);
  await waiting;
  backend.hangs.clear();
  expect(await got(space, "k")).toBeUndefined();
});

test("a connect without an answer does not prevent the store from being used later", async () => {
  const { clock, backend, space } = setUp();
  backend.hangs.add("connect");
  const waiting = expect(space.set("k", 1, TERMS)).rejects.toBeInstanceOf(OperationTimeoutError);
  await clock.advance(3 * TIMEOUT_MS);
  await waiting;
  backend.hangs.clear();
  await space.set("k", 1, TERMS);
  expect(await got(space, "k")).toBe(1);
});

test("a listing ends when the stamps of its entries do not arrive", async () => {
  const { clock, backend, space } = setUp();
  await space.set("k", 1, TERMS);
  backend.hangs.add("readMany");
  const listing = async (): Promise<void> => {
    for await (const _ of space.scan());
  };
  const waiting = expect(listing()).rejects.toBeInstanceOf(OperationTimeoutError);
  await clock.advance(TIMEOUT_MS);
  await waiting;
});

test("the removal after a clear() that got no answer does not prevent the next one", async () => {
  const { clock, shared, backend, space } = setUp();
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms / 100; step++) {
      await clock.advance(100);
      await settle();
    }
  };
  await space.set("a", 1, TERMS);
  await space.clear();
  backend.hangs.add("readMany");
  await pass(3_000);
  backend.hangs.clear();
  await space.set("b", 1, TERMS);
  await space.clear();
  await pass(3_000);
  expect(shared.keys().filter((key) => key.startsWith("p:"))).toEqual([]);
});

test("a set that was reported as failed is not executed after a later one", async () => {
  const { clock, backend, space } = setUp();
  await space.set("k", 0, TERMS);
  await owedRemoval(space, backend);
  // The stamp of its tag takes most of the time, pending invalidations the rest.
  backend.swapsAfterMs = 0.8 * TIMEOUT_MS;
  backend.takesAfterMs.push(0.9 * TIMEOUT_MS);
  const older = expect(space.set("k", "older", { ...TERMS, tags: ["t"] })).rejects.toBeInstanceOf(
    OperationTimeoutError,
  );
  await clock.advance(1.1 * TIMEOUT_MS);
  await older;
  const newer = space.set("k", "newer", TERMS);
  await clock.advance(0.1 * TIMEOUT_MS);
  await newer;
  expect(await got(space, "k")).toBe("newer");
  await clock.advance(5 * TIMEOUT_MS);
  expect(await got(space, "k")).not.toBe("older");
});

test("an error that cannot be changed ends the call it failed, like any other", async () => {
  const { backend, space } = setUp();
  backend.fault = Object.freeze(new Error("refused by redis://user:secret@host"));
  await expect(space.delete(["k"])).rejects.toThrow(
    "the store failed at delete: refused by redis://***@host",
  );
});

test("what a backend throws synchronously when it is opened or closed is a typed error", async () => {
  const clock = new ManualClock();
  const backend = new Hanging(new ReferenceStore(clock));
  const cache = cacheWithClock({ backend }, clock);
  await cache.connect();
  const fails = (): never => {
    throw new Error("no");
  };
  Object.assign(backend, { connect: fails, disconnect: fails });
  await expect(cache.disconnect()).rejects.toMatchObject({ code: "STORE_FAILED", operation: "disconnect" });
  await expect(cache.connect()).rejects.toMatchObject({ code: "STORE_FAILED", operation: "connect" });
});
