import { beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { CodecError } from "../../../src/core/errors.ts";
import type { Ticket } from "../../../src/core/namespace.ts";
import type { GetOrSetOptions, Load } from "../../../src/core/options.ts";
import { settle } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { Gate } from "../../behaviour/cache/gate.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { down, fail, LoadBench } from "./load-bench.ts";

let bench: LoadBench;
beforeEach(() => {
  bench = new LoadBench();
});

describe("a store that fails", () => {
  it.each(["find", "admit"] as const)(
    "in %s: one load for all callers, nothing stored, one report",
    async (part) => {
      bench.broken = { [part]: fail };
      const gate = new Gate<string>();
      const callers = Array.from({ length: 20 }, () => bench.value(gate.load));
      await gate.finish("value");
      expect(new Set(await Promise.all(callers))).toEqual(new Set(["value"]));
      expect(gate.calls).toBe(1);
      expect(bench.space.peek("k")).toBeUndefined();
      expect(bench.stored).toEqual([]);
      expect(bench.reported).toEqual([down]);
    },
  );

  it("a rejection counts like a throw", async () => {
    bench.broken = { find: () => Promise.reject(down) };
    expect(await bench.value(() => 1)).toBe(1);
    expect(bench.reported).toEqual([down]);
  });

  it("in admit: the load is not given the stale value that was found, which may be invalidated by now", async () => {
    await bench.value(() => "old", { ttl: 1, staleIfError: 60 });
    await bench.clock.advance(2_000);
    bench.broken = { admit: fail };
    expect(await bench.value<string>(({ stale }) => `${stale} and new`, { staleIfError: 60 })).toBe(
      "undefined and new",
    );
  });

  it("when storing: every caller gets the value, the failure is reported, nothing counts as stored", async () => {
    const ticket: Ticket = { commit: fail, abandon: vi.fn() };
    bench.broken = { admit: () => ({ ticket }) };
    const gate = new Gate<string>();
    const callers = [bench.value(gate.load), bench.value(gate.load)];
    await gate.finish("value");
    expect(await Promise.all(callers)).toEqual(["value", "value"]);
    expect(bench.reported).toEqual([down]);
    expect(bench.stored).toEqual([]);
  });

  it("with stale-while-revalidate: the callers wait for the load, since there is no value to serve", async () => {
    await bench.value(() => "old", { ttl: 1, staleWhileRevalidate: 60 });
    await bench.clock.advance(2_000);
    bench.broken = { find: fail };
    expect(await bench.value(() => "new", { staleWhileRevalidate: 60 })).toBe("new");
  });

  it("after a failed load: the caller gets the load's own error, not the store's", async () => {
    bench.broken = { find: fail };
    const own = new Error("the load's own");
    await expect(bench.value(() => Promise.reject(own), { staleIfError: 60 })).rejects.toBe(own);
  });
});

describe("a value that cannot be stored", () => {
  it("is an error of the load, reported to every caller once", async () => {
    const gate = new Gate<unknown>();
    const callers = Promise.allSettled([bench.value(gate.load), bench.value(gate.load)]);
    await gate.finish({ run: () => 1 });
    const outcomes = await callers;
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { code: "VALUE_UNSUPPORTED", path: "$.run" },
      });
    }
    expect(gate.calls).toBe(1);
    expect(bench.reported).toEqual([]);
    expect(bench.space.peek("k")).toBeUndefined();
  });

  it("that is merely too large is returned and reported", async () => {
    bench = new LoadBench({ maxBytes: 1_000 });
    const large = "x".repeat(5_000);
    expect(await bench.value(() => large)).toBe(large);
    expect(bench.reported).toEqual([expect.any(CodecError)]);
    expect(bench.reported[0]).toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(bench.stored).toEqual([]);
  });

  it("may be anything if the load skips storing", async () => {
    const value = { run: () => 1 };
    const skipping: Load<typeof value> = ({ skip }) => {
      skip();
      return value;
    };
    const [one, other] = await Promise.all([bench.value(skipping), bench.value(skipping)]);
    expect([one === value, other === value]).toEqual([true, true]);
  });

  it("releases its permission to store: when skipped, undefined, failed or refused", async () => {
    const ticket = { commit: vi.fn(() => true), abandon: vi.fn() };
    bench.broken = { admit: () => ({ ticket }) };
    await bench.value(({ skip }) => skip());
    await bench.value(() => undefined);
    await bench.value(() => Promise.reject(new Error("no"))).catch(() => {});
    expect(ticket.commit).not.toHaveBeenCalled();
    expect(ticket.abandon).toHaveBeenCalledTimes(3);
  });
});

describe("ownership", () => {
  it("no two waiters share an object, however they wait", async () => {
    const gate = new Gate<{ list: number[] }>();
    const options: (GetOrSetOptions | undefined)[] = [
      undefined,
      {},
      { softTimeout: 5 },
      { hardTimeout: 5 },
      { softTimeout: 1, hardTimeout: 50, staleIfError: 5 },
      { staleWhileRevalidate: 60 },
      undefined,
    ];
    const callers = options.map((each) => bench.value(gate.load, each));
    await bench.clock.advance(2_000);
    const source = { list: [1] };
    await gate.finish(source);
    const values = await Promise.all(callers);
    expect(gate.calls).toBe(1);
    expect(new Set(values.map(({ list }) => list)).size).toBe(values.length);
    for (const value of values) {
      expect(value).toEqual({ list: [1] });
      value.list.push(2);
    }
    expect(bench.space.peek("k")).toEqual({ list: [1] });
  });

  it("the stale value given to a load is a copy", async () => {
    const options = { ttl: 1, staleIfError: 60 };
    await bench.value(() => ({ list: [1] }), options);
    await bench.clock.advance(2_000);
    const spoiling: Load<{ list: number[] }> = ({ stale }) => {
      stale?.list.push(2);
      throw new Error("no");
    };
    expect(await bench.value(spoiling, options)).toEqual({ list: [1] });
    expect(await bench.value(spoiling, options)).toEqual({ list: [1] });
  });
});

describe("loads that are superseded", () => {
  it("every caller gets a load newer than the last change before its call, under endless changes", async () => {
    const loads: { finish(value: number): void }[] = [];
    const load: Load<number> = ({ setTags }) =>
      new Promise((resolve) =>
        loads.push({
          finish(value) {
            setTags(["late"]);
            resolve(value);
          },
        }),
      );
    const before: Promise<number>[] = [];
    const after: { readonly value: Promise<number>; readonly newerThan: number }[] = [];
    for (let round = 0; round < 20; round++) {
      before.push(bench.value(load));
      await settle();
      await bench.space.invalidateTags(["late"]);
      after.push({ value: bench.value(load), newerThan: loads.length - 1 });
      await settle();
      loads[round]?.finish(round);
      await settle();
    }
    // Nothing changes any more: the load still running is the last one.
    for (const [at, last] of loads.entries()) last.finish(at);
    await Promise.all(before);
    for (const { value, newerThan } of after) expect(await value).toBeGreaterThan(newerThan);
    expect(loads.length).toBeLessThanOrEqual(21);
  });

  it("a caller who needs a newer load joins one that began after its call, whatever else has changed", async () => {
    const gate = new Gate<string>();
    const finishLate = async (value: string): Promise<void> => {
      gate.contexts[gate.calls - 1]?.setTags(["late"]);
      await gate.finish(value);
    };
    const early = bench.value(gate.load);
    await settle();
    await bench.space.invalidateTags(["late"]);
    const joined = [bench.value(gate.load), bench.value(gate.load)];
    await settle();
    await finishLate("old");
    await bench.space.invalidateTags(["late", "other"]);
    await finishLate("new");
    expect(await early).toBe("old");
    expect(await Promise.all(joined)).toEqual(["new", "new"]);
    expect(gate.calls).toBe(2);
  });

  it("are not stored, and the value stored after them is the newer one", async () => {
    const gate = new Gate<string>();
    const older = bench.value(gate.load);
    await settle();
    await bench.space.delete(["k"]);
    const newer = bench.value(gate.load);
    await gate.finish("old");
    expect(bench.space.peek("k")).toBeUndefined();
    await gate.finish("new");
    expect(await Promise.all([older, newer])).toEqual(["old", "new"]);
    expect(bench.space.peek("k")).toBe("new");
    expect(bench.stored).toEqual(["k"]);
  });

  it("when the newer one ends first, the older one changes nothing", async () => {
    const [slow, fast] = [new Gate<string>(), new Gate<string>()];
    const older = bench.value(slow.load);
    await settle();
    await bench.space.clear();
    const newer = bench.value(fast.load);
    await fast.finish("new");
    await slow.finish("old");
    expect(await Promise.all([older, newer])).toEqual(["old", "new"]);
    expect(bench.space.peek("k")).toBe("new");
  });

  it("forceLoad neither joins a running load nor lets it store", async () => {
    const gate = new Gate<string>();
    const running = bench.value(gate.load);
    await settle();
    const forced = bench.value(gate.load, { forceLoad: true });
    await settle();
    expect(gate.calls).toBe(2);
    await gate.finish("older");
    expect(bench.space.peek("k")).toBeUndefined();
    await gate.finish("forced");
    expect(await Promise.all([running, forced])).toEqual(["older", "forced"]);
    expect(bench.space.peek("k")).toBe("forced");
  });

  it("nothing is remembered once the last load has ended, however it ended", async () => {
    const gate = new Gate<string>();
    const callers = Promise.allSettled([
      bench.value(gate.load, undefined, "a"),
      bench.value(gate.load, undefined, "b"),
      bench.value(gate.load, { hardTimeout: 1 }, "c"),
    ]);
    await settle();
    expect(bench.space.changes.watched).toBe(true);
    await bench.clock.advance(1_000);
    await gate.finish("done");
    await gate.fail(new Error("no"));
    expect(bench.space.changes.watched).toBe(true);
    await gate.finish("late");
    expect(bench.space.changes.watched).toBe(false);
    expect((await callers).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    // The store's sweep, and the limit of loads.
    expect(bench.clock.pending).toBe(2);
  });
});

describe("tags that a load names without declaring its context", () => {
  it("keep its value out of a shared store, which is reported once", async () => {
    const cache = new XCache({ backend: new ReferenceBackend(new ReferenceStore(systemClock)) });
    const reported: Error[] = [];
    cache.on("error", ({ error }) => reported.push(error));
    const undeclared: Load<number> = (...given) => {
      given[0].setTags(["late"]);
      return 1;
    };
    for (const key of ["a", "b"]) expect(await cache.getOrSet(key, undeclared)).toBe(1);
    expect(await cache.get("a")).toBeUndefined();
    expect(reported).toEqual([expect.objectContaining({ code: "ARGUMENT_INVALID", operation: "getOrSet" })]);
    expect(reported[0]?.message).toMatch(/^load must declare the context .* for "a"$/);
    const declared: Load<number> = ({ setTags }) => {
      setTags(["late"]);
      return 2;
    };
    expect(await cache.getOrSet("c", declared)).toBe(2);
    expect(await cache.get("c")).toBe(2);
    await cache.disconnect();
  });
});
