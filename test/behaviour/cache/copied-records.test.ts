// A store of somebody else's that keeps copies of the records it gets, as structuredClone or a spread makes them.
import { expect, test } from "vitest";
import type { KeyedRecord } from "../../../src/core/backend.ts";
import type { StoreRecord } from "../../../src/core/record.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";

class CopyingBackend extends ReferenceBackend {
  readonly kept: StoreRecord[] = [];
  readonly #copy: (record: StoreRecord) => StoreRecord;

  constructor(store: ReferenceStore, copy: (record: StoreRecord) => StoreRecord) {
    super(store);
    this.#copy = copy;
  }

  override async write(item: KeyedRecord): Promise<void> {
    const record = this.#copy(item.record);
    this.kept.push(record);
    await super.write({ ...item, record });
  }
}

const spread = (record: StoreRecord): StoreRecord =>
  record.kind === "entry" ? { ...record, payload: { ...record.payload } } : { ...record };

test.each([
  ["structuredClone", structuredClone<StoreRecord>],
  ["a spread", spread],
])("%s of a record has the value of its entry and nothing else", async (_, copy) => {
  const clock = new ManualClock();
  const backend = new CopyingBackend(new ReferenceStore(clock), copy);
  const cache = cacheWithClock({ backend }, clock);
  await cache.set("secret", "of another entry");
  await cache.set("a", { name: "Ada" });
  expect(await cache.get("a")).toEqual({ name: "Ada" });
  const entry = backend.kept.findLast(({ kind }) => kind === "entry");
  if (entry?.kind !== "entry") throw new Error("no entry was written");
  expect(Object.keys(entry.payload).sort()).toEqual(["bytes", "format"]);
  expect(Buffer.from(entry.payload.bytes).toString("latin1")).toContain("Ada");
  await cache.disconnect();
});
