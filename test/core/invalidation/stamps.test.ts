// The near tier serves several hits on one check of their stamps and of the push channel, as long as nothing has happened.
import { beforeEach, expect, it } from "vitest";
import type { PushChannel } from "../../../src/core/backend.ts";
import type { WatchedRead } from "../../../src/core/invalidation/inflight-reads.ts";
import { HeldStamp, type StampBook, StampChecks } from "../../../src/core/invalidation/stamps.ts";
import { type NearPage, PushedNear } from "../../../src/core/near/pushed-near.ts";
import type { Entry } from "../../../src/core/record.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

const NEVER = Number.POSITIVE_INFINITY;
const stamp = new HeldStamp("stampid!", NEVER, 1);
const entry: Entry = {
  kind: "entry",
  version: "version!",
  key: "app:k",
  namespaceStamps: [stamp.id],
  tags: [],
  created: 0,
  expires: NEVER,
  staleUntil: NEVER,
  payload: { format: 0, bytes: Buffer.alloc(1) },
};

let checks: StampChecks;
let near: PushedNear;
let anotherSpace: () => PushedNear;
let isTrusted: boolean;
let checkCount: number;
/** How long the current turn has been busy. */
let busyMs: number;

beforeEach(() => {
  busyMs = 0;
  const clock = new ManualClock();
  const passing = { ...clock, now: () => clock.now() + busyMs };
  const { backend } = openSharedStore(new ReferenceStore(clock).client(), clock);
  isTrusted = true;
  checkCount = 0;
  const push: Required<PushChannel> = {
    epoch: () => 1,
    isTrusted: () => {
      checkCount++;
      return isTrusted;
    },
    onChange: () => () => {},
  };
  checks = new StampChecks();
  stamp.isPresent = true;
  anotherSpace = () => {
    const space = new PushedNear({ page: mapPage(), push, backend, clock: passing, checks });
    const seals = { heldNamespaceStamps: () => [stamp], heldTagStamps: () => [], stampsOf: () => [] };
    const read = space.begin("k", "app:k") as WatchedRead;
    expect(space.keep("k", "value", entry, read, seals)).toBe(true);
    return space;
  };
  near = anotherSpace();
});

function mapPage(): NearPage {
  const kept = new Map<string, unknown>();
  return {
    peek: (key) => kept.get(key),
    holds: (key) => kept.has(key),
    declines: () => false,
    keep: (key, value) => kept.set(key, value).size > 0,
    drop: (key) => kept.delete(key),
    keys: () => kept.keys(),
    clear: () => kept.clear(),
  };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it("one check covers several hits in quick succession within a turn", () => {
  for (let hit = 0; hit < 17; hit++) expect(near.peek("k")).toBe("value");
  expect(checkCount).toBe(2);
});

it("every hit is checked when time passes between them, even within one turn", () => {
  for (let hit = 0; hit < 17; hit++) expect(near.peek("k")).toBe("value");
  checkCount = 0;
  for (let hit = 0; hit < 40; hit++) {
    busyMs += 20;
    expect(near.peek("k")).toBe("value");
  }
  expect(checkCount).toBe(40);
});

it("a forgotten stamp is noticed by the next hit of the same turn", () => {
  expect(near.peek("k")).toBe("value");
  stamp.isPresent = false;
  checks.revoke();
  expect(near.peek("k")).toBeUndefined();
});

it("a channel that is no longer trusted is noticed within the turn, after a few hits", () => {
  expect(near.peek("k")).toBe("value");
  isTrusted = false;
  let served = 0;
  while (near.peek("k") !== undefined) served++;
  expect(served).toBeLessThanOrEqual(16);
});

it("every turn begins with a check", async () => {
  near.peek("k");
  isTrusted = false;
  await nextTurn();
  expect(near.peek("k")).toBeUndefined();
  isTrusted = true;
  expect(near.peek("k")).toBe("value");
});

it("a stamp counts as used in every turn that relies on it", async () => {
  near.peek("k");
  stamp.isUsed = false;
  await nextTurn();
  near.peek("k");
  expect(stamp.isUsed).toBe(true);
});

it("the number of hits served on one check does not grow with the number of namespaces", () => {
  const others = Array.from({ length: 8 }, () => anotherSpace());
  for (const one of [near, ...others]) expect(one.peek("k")).toBe("value");
  isTrusted = false;
  let served = 0;
  for (const one of [near, ...others]) while (one.peek("k") !== undefined) served++;
  expect(served).toBeLessThanOrEqual(16);
});

it("an observer of stamps is notified once per endless turn", () => {
  let notified = 0;
  const someone = { revoke: () => void notified++ };
  checks.trust(someone);
  checks.revoke();
  checks.revoke();
  expect(notified).toBe(1);
});

it.each([
  ["forgotten", (stamps: StampBook) => stamps.forget("stamp")],
  ["forgotten with all others", (stamps: StampBook) => stamps.forgetAll()],
])("an observer of stamps is notified immediately when a held one is %s", async (_, happens) => {
  const clock = new ManualClock();
  const { stamps } = openSharedStore(new ReferenceStore(clock, { push: "at once" }).client(), clock);
  await stamps.ensure(["stamp"], 60_000);
  await stamps.read(["stamp"]);
  expect(stamps.held("stamp")).toBeDefined();
  let notified = 0;
  stamps.checks.trust({ revoke: () => void notified++ });
  happens(stamps);
  expect(notified).toBe(1);
});
