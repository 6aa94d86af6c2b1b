// Tags that only the load can name, invalidated by another process while it runs: a caller who joined the load may have
// arrived after that, and gets a newer value.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SwapResult } from "../../../src/core/backend.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { TAG_GROUPS, tagGroup } from "../../../src/core/keys.ts";
import type { Load } from "../../../src/core/options.ts";
import type { StoreRecord, Token } from "../../../src/core/record.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import { settle } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { Gate } from "../../behaviour/cache/gate.ts";
import { type Moment, moment } from "../../support/moment.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";

const TAG = "late";

/** Refuses to store, or is paused at one of two points. */
class Unreliable extends ReferenceBackend {
  refuses = false;
  /** Before an entry is stored. */
  storing: Promise<void> | undefined;
  /** Before anything is read. */
  reading: Promise<void> | undefined;
  reads = 0;

  override async read(key: string): Promise<StoreRecord | undefined> {
    this.reads++;
    await this.reading;
    return super.read(key);
  }

  override async readMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    this.reads++;
    await this.reading;
    return super.readMany(keys);
  }

  override async swap(
    key: string,
    expected: Token | undefined,
    next?: { readonly record: StoreRecord; readonly lifetimeMs: number },
  ): Promise<SwapResult> {
    if (next?.record.kind === "entry") await this.storing;
    if (this.refuses && next?.record.kind === "entry") throw new BackendError("STORE_FAILED", "no");
    return super.swap(key, expected, next);
  }
}

let clock: ManualClock;
let backend: Unreliable;
let mine: XCache;
let other: XCache;
let gate: Gate<string>;
/** Until the test ends. */
let ended: Moment;

beforeEach(() => {
  clock = new ManualClock();
  const store = new ReferenceStore(clock);
  backend = new Unreliable(store);
  mine = cacheWithClock({ backend }, clock);
  other = cacheWithClock({ backend: store.client() }, clock);
  gate = new Gate();
  ended = moment();
});
afterEach(async () => {
  ended.let();
  await mine.disconnect();
  await other.disconnect();
});

const namesTag: Load<string> = async (context) => {
  const value = await gate.load(context);
  context.setTags([TAG]);
  return value;
};

const skips: Load<string> = async (context) => {
  context.skip();
  return namesTag(context);
};

/** A running load, and a call that has joined it. */
async function underWay(load: Load<string>) {
  const first = mine.getOrSet("k", load);
  await settle();
  const joined = mine.getOrSet("k", load);
  await settle();
  return { first, joined };
}

function errorsOf(cache: XCache): readonly Error[] {
  const errors: Error[] = [];
  cache.on("error", ({ error }) => errors.push(error));
  return errors;
}

test.each([
  ["is not stored", namesTag],
  ["was not to be stored", skips],
])(
  "a load that %s: callers who came after the invalidation load again, callers before it get the value",
  async (_, load) => {
    const first = mine.getOrSet("k", load);
    const together = mine.getOrSet("k", load);
    await settle();
    await other.invalidateTags(TAG);
    const joined = [mine.getOrSet("k", load), mine.getOrSet("k", load)];
    await settle();
    expect(gate.calls).toBe(1);
    await gate.finish("old");
    expect(await Promise.all([first, together])).toEqual(["old", "old"]);
    await gate.finish("new");
    expect(await Promise.all(joined)).toEqual(["new", "new"]);
    expect(gate.calls).toBe(2);
  },
);

test("nobody loads again because of a tag in another group, even when nothing was to be stored", async () => {
  const elsewhere = Array.from({ length: TAG_GROUPS }, (_, at) => `other ${at}`).find(
    (tag) => tagGroup(tag) !== tagGroup(TAG),
  ) as string;
  const first = mine.getOrSet("k", skips);
  await settle();
  await other.invalidateTags(elsewhere);
  const joined = mine.getOrSet("k", skips);
  await settle();
  await gate.finish("value");
  expect(await Promise.all([first, joined])).toEqual(["value", "value"]);
  expect(gate.calls).toBe(1);
});

test("a caller who came while the result was being stored reads the store again", async () => {
  const storing = moment();
  backend.storing = storing.come;
  const first = mine.getOrSet("k", namesTag);
  await gate.finish("old");
  const unconcerned = mine.getOrSet("k", namesTag);
  await settle();
  await other.invalidateTags(TAG);
  const joined = mine.getOrSet("k", namesTag);
  await settle();
  storing.let();
  await gate.finish("new");
  expect(await Promise.all([first, unconcerned, joined])).toEqual(["old", "new", "new"]);
  expect(gate.calls).toBe(2);
  // If nothing has changed, the stored value is found.
  const again = moment();
  backend.storing = again.come;
  const second = mine.getOrSet("k2", namesTag);
  await gate.finish("value");
  const later = mine.getOrSet("k2", namesTag);
  await settle();
  again.let();
  expect(await Promise.all([second, later])).toEqual(["value", "value"]);
  expect(gate.calls).toBe(3);
});

test("a caller who waited alongside the one that began the load, while another process was loading, gets its value", async () => {
  const theirs = new Gate<string>();
  const holder = other.getOrSet("k", theirs.load).catch((error: unknown) => error);
  await settle();
  const waiting = [mine.getOrSet("k", namesTag), mine.getOrSet("k", namesTag)];
  await settle();
  await theirs.fail(new Error("theirs"));
  expect(await holder).toMatchObject({ message: "theirs" });
  await clock.advance(500);
  expect(gate.calls).toBe(1);
  await other.invalidateTags(TAG);
  await gate.finish("value");
  expect(await Promise.all(waiting)).toEqual(["value", "value"]);
  expect(gate.calls).toBe(1);
});

test("a store that fails to take the value leaves it in doubt, and is asked once", async () => {
  const errors = errorsOf(mine);
  const { first, joined } = await underWay(namesTag);
  backend.refuses = true;
  await gate.finish("old");
  expect(errors.map(({ message }) => message)).toEqual(["no"]);
  await gate.finish("new");
  expect(await first).toBe("old");
  expect(await joined).toBe("new");
  expect(errors).toHaveLength(1);
});

test("a store that does not answer costs one deadline, and nothing for callers who have not joined", async () => {
  const errors = errorsOf(mine);
  const { first, joined } = await underWay(skips);
  backend.reading = ended.come;
  await gate.finish("old");
  expect(await first).toBe("old");
  expect(gate.calls).toBe(1);
  await clock.advance(1_000);
  expect(errors).toMatchObject([{ code: "OPERATION_TIMEOUT" }]);
  expect(gate.calls).toBe(2);
  await gate.finish("new");
  expect(await joined).toBe("new");
});

test("the store is not asked if nobody has joined", async () => {
  const first = mine.getOrSet("k", skips);
  await settle();
  const { reads } = backend;
  await gate.finish("value");
  expect(await first).toBe("value");
  expect(backend.reads).toBe(reads);
});

test("a hard timeout applies while the store is asked", async () => {
  const first = mine.getOrSet("k", skips);
  await settle();
  const joined = mine.getOrSet("k", skips, { hardTimeout: 0.5 }).catch((error: unknown) => error);
  await settle();
  backend.reading = ended.come;
  await gate.finish("old");
  expect(await first).toBe("old");
  await clock.advance(500);
  expect(await joined).toMatchObject({ code: "LOAD_TIMEOUT" });
});

test("a load that cannot be seen to name tags is reported, even when nothing was to be stored", async () => {
  const errors = errorsOf(mine);
  const hidden: Load<string> = async (...args) => skips(...args);
  const first = mine.getOrSet("k", hidden);
  await settle();
  await gate.finish("value");
  expect(await first).toBe("value");
  expect(errors).toMatchObject([{ code: "ARGUMENT_INVALID" }]);
});

test("a cache that was disconnected meanwhile sends nothing more", async () => {
  const { first, joined } = await underWay(namesTag);
  await mine.disconnect();
  await gate.finish("value");
  expect(await Promise.all([first, joined])).toEqual(["value", "value"]);
  expect(gate.calls).toBe(1);
});

test("a cache that is disconnected while the store is asked sends nothing more", async () => {
  const errors = errorsOf(mine);
  const { first, joined } = await underWay(skips);
  const reading = moment();
  backend.reading = reading.come;
  await gate.finish("value");
  expect(await first).toBe("value");
  const leaving = mine.disconnect();
  await clock.advance(1_000);
  await leaving;
  reading.let();
  expect(await joined).toBe("value");
  expect(gate.calls).toBe(1);
  expect(errors).toEqual([]);
});

test("the hard timeout counts from the start of the call, whatever the call waits for", async () => {
  const first = mine.getOrSet("k", namesTag);
  await settle();
  await other.invalidateTags(TAG);
  const begun = clock.now();
  const joined = mine.getOrSet("k", namesTag, { hardTimeout: 1 }).then(
    () => undefined,
    (error: unknown) => ({ error, after: clock.now() - begun }),
  );
  await settle();
  await clock.advance(900);
  await gate.finish("old");
  expect(await first).toBe("old");
  expect(gate.calls).toBe(2);
  await clock.advance(2_000);
  expect(await joined).toMatchObject({ error: { code: "LOAD_TIMEOUT" }, after: 1_000 });
  await gate.finish("new");
  expect(await mine.get("k")).toBe("new");
});
