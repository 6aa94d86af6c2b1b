// Hidden names: how many of them a process remembers.
import { expect, test } from "vitest";
import { type Seal, SealedBackend } from "../../../src/core/shared/sealed-backend.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";

function counted(): { backend: SealedBackend; hidden(): number } {
  let hidden = 0;
  const seal: Seal = {
    prepare: async () => {},
    isReady: true,
    seal: ({ payload }) => payload,
    open: ({ payload }) => payload,
    names: {
      hide: (name) => {
        hidden++;
        return name;
      },
      reveal: (name) => name,
    },
  };
  const reference = new ReferenceBackend(new ReferenceStore(new ManualClock()));
  return { backend: new SealedBackend(reference, seal), hidden: () => hidden };
}

test("short names are sealed once", async () => {
  const { backend, hidden } = counted();
  await backend.connect();
  for (const at of [1, 2, 1, 2, 1]) await backend.read(`p:key${at}`);
  expect(hidden()).toBe(2);
});

test("long names are not all remembered", async () => {
  const { backend, hidden } = counted();
  await backend.connect();
  const first = `p:0${"x".repeat(50_000)}`;
  await backend.read(first);
  for (let at = 1; at <= 100; at++) await backend.read(`p:${at}${"x".repeat(50_000)}`);
  await backend.read(first);
  expect(hidden()).toBe(102);
});
