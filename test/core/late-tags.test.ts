// Tags that only the load can name, invalidated by another process while it runs: whoever joined the load may have come
// after that, and gets a newer one.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SwapResult } from "../../src/core/backend.ts";
import { BackendError } from "../../src/core/errors.ts";
import { TAG_GROUPS, tagGroup } from "../../src/core/keys.ts";
import type { Load } from "../../src/core/options.ts";
import type { StoreRecord, Token } from "../../src/core/record.ts";
import { cacheWithClock, ManualClock } from "../../src/testing/index.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import type { XCache } from "../../src/xcache.ts";
import { ReferenceBackend, ReferenceStore } from "../support/reference-backend.ts";
import { Gate } from "../xcache/gate.ts";

const TAG = "late";

/** Does not take what is to be stored. */
class Refusing extends ReferenceBackend {
  refuses = false;

  override async swap(
    key: string,
    expected: Token | undefined,
    next?: { readonly record: StoreRecord; readonly lifetimeMs: number },
  ): Promise<SwapResult> {
    if (this.refuses && next?.record.kind === "entry") throw new BackendError("STORE_FAILED", "no");
    return super.swap(key, expected, next);
  }
}

let clock: ManualClock;
let backend: Refusing;
let mine: XCache;
let other: XCache;
let gate: Gate<string>;

beforeEach(() => {
  clock = new ManualClock();
  const store = new ReferenceStore(clock);
  backend = new Refusing(store);
  mine = cacheWithClock({ backend }, clock);
  other = cacheWithClock({ backend: store.client() }, clock);
  gate = new Gate();
});
afterEach(async () => {
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

test.each([
  ["is not stored", namesTag],
  ["was not to be stored", skips],
])(
  "a load that %s: who came after it began loads again, who came before is given its value",
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

test("nobody loads again because of a tag of another group, also when nothing was to be stored", async () => {
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

test("a store that fails when it is to take the value leaves it in doubt, and is asked once", async () => {
  const errors: Error[] = [];
  mine.on("error", ({ error }) => errors.push(error));
  const first = mine.getOrSet("k", namesTag);
  await settle();
  const joined = mine.getOrSet("k", namesTag);
  await settle();
  backend.refuses = true;
  await gate.finish("old");
  backend.refuses = false;
  expect(errors.map(({ message }) => message)).toEqual(["no"]);
  await gate.finish("new");
  expect(await first).toBe("old");
  expect(await joined).toBe("new");
  expect(await other.get("k")).toBe("new");
});

test("a cache that was disconnected meanwhile asks for nothing any more", async () => {
  const first = mine.getOrSet("k", namesTag);
  await settle();
  const joined = mine.getOrSet("k", namesTag);
  await settle();
  await mine.disconnect();
  await gate.finish("value");
  expect(await Promise.all([first, joined])).toEqual(["value", "value"]);
  expect(gate.calls).toBe(1);
});

test("the hard timeout counts from the beginning of the call, whatever it waits for", async () => {
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
