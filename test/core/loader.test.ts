import { beforeEach, describe, expect, it, vi } from "vitest";
import { MemoryBackend, type MemoryBackendOptions } from "../../src/backends/memory/backend.ts";
import { createCodec } from "../../src/codec/codec.ts";
import { BackendError, CodecError, ConfigError } from "../../src/core/errors.ts";
import { type Loaded, Loader } from "../../src/core/loader.ts";
import type { GetOrSetOptions, Load } from "../../src/core/options.ts";
import type { Space, Ticket } from "../../src/core/space.ts";
import { loadRequest } from "../../src/core/terms.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";
import { Gate } from "../xcache/gate.ts";

const DEFAULTS = {
  defaultTtl: 300,
  ttlJitter: 0,
  staleIfError: 0,
  staleWhileRevalidate: 0,
  random: Math.random,
};

/** A loader on a real namespace in memory, parts of which a test can replace. */
class Bench {
  readonly clock = new ManualClock();
  readonly space: Space;
  readonly reported: Error[] = [];
  readonly stored: string[] = [];
  readonly loader: Loader;
  broken: Partial<Space> = {};

  constructor(options: MemoryBackendOptions = {}) {
    this.space = new MemoryBackend(options).store(this.clock, createCodec()).space("bench");
    this.loader = new Loader(this.space.changes, {
      clock: this.clock,
      space: () => this.#present(),
      own: (value) => this.space.own(value),
      signal: () => new AbortController().signal,
      stored: (key) => this.stored.push(key),
      report: (error) => this.reported.push(error),
    });
  }

  /** What getOrSet does on a miss. */
  load<T>(load: Load<T>, options?: GetOrSetOptions, key = "k"): Promise<Loaded> {
    return this.loader.load(key, load, loadRequest(options, DEFAULTS));
  }

  async value<T>(load: Load<T>, options?: GetOrSetOptions, key = "k"): Promise<T> {
    return (await this.load(load, options, key)).value as T;
  }

  #present(): Space {
    const { broken, space } = this;
    return new Proxy(space, {
      get: (target, name) => {
        const part: unknown = Reflect.get(broken, name) ?? Reflect.get(target, name, target);
        return typeof part === "function" ? part.bind(target) : part;
      },
    });
  }
}

const down = new BackendError("STORE_FAILED", "the store is down");
const fail = (): never => {
  throw down;
};

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
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

  it("in admit: the load is still shown the stale value that was found", async () => {
    await bench.value(() => "old", { ttl: 1, staleIfError: 60 });
    await bench.clock.advance(2_000);
    bench.broken = { admit: fail };
    expect(await bench.value<string>(({ stale }) => `${stale} and new`, { staleIfError: 60 })).toBe(
      "old and new",
    );
  });

  it("when storing: every caller has the value, the failure is reported, nothing counts as stored", async () => {
    const ticket: Ticket = { commit: fail, abandon: vi.fn() };
    bench.broken = { admit: () => ({ ticket }) };
    const gate = new Gate<string>();
    const callers = [bench.value(gate.load), bench.value(gate.load)];
    await gate.finish("value");
    expect(await Promise.all(callers)).toEqual(["value", "value"]);
    expect(bench.reported).toEqual([down]);
    expect(bench.stored).toEqual([]);
  });

  it("with stale-while-revalidate: the callers wait for the load, for there is nothing to answer with", async () => {
    await bench.value(() => "old", { ttl: 1, staleWhileRevalidate: 60 });
    await bench.clock.advance(2_000);
    bench.broken = { find: fail };
    expect(await bench.value(() => "new", { staleWhileRevalidate: 60 })).toBe("new");
  });

  it("after a failed load: the load's own error reaches the caller, not the store's", async () => {
    bench.broken = { find: fail };
    const own = new Error("the load's own");
    await expect(bench.value(() => Promise.reject(own), { staleIfError: 60 })).rejects.toBe(own);
  });
});

describe("a value that cannot be stored", () => {
  it("is a mistake of the load, told to every caller once", async () => {
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

  it("that is merely too large is handed out and reported", async () => {
    bench = new Bench({ maxBytes: 1_000 });
    const large = "x".repeat(5_000);
    expect(await bench.value(() => large)).toBe(large);
    expect(bench.reported).toEqual([expect.any(CodecError)]);
    expect(bench.reported[0]).toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(bench.stored).toEqual([]);
  });

  it("may be anything where the load skips storing", async () => {
    const value = { run: () => 1 };
    const skipping: Load<typeof value> = ({ skip }) => {
      skip();
      return value;
    };
    const [one, other] = await Promise.all([bench.value(skipping), bench.value(skipping)]);
    expect([one === value, other === value]).toEqual([true, true]);
  });

  it("gives its permission to store back: when skipped, undefined, failed or refused", async () => {
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
  it("no two waiters share an object, whatever they wait with", async () => {
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

  it("the stale value shown to a load is its own", async () => {
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

describe("loads that are overtaken", () => {
  it("every caller gets a load newer than the last change before its call, under changes without end", async () => {
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
    // Nothing changes any more: what still runs is the last load.
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

  it("are not stored, and what is stored after them is the newer one", async () => {
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

  it("the newer one may end first; the older one then changes nothing", async () => {
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

  it("forceLoad does not join a load that is running, nor let it store", async () => {
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
    expect(bench.clock.pending).toBe(1);
  });
});

describe("soft and hard timeouts together", () => {
  const old = { ttl: 10, staleIfError: 60 };

  async function withOldValue(): Promise<Gate<string>> {
    await bench.value(() => "old", old);
    await bench.clock.advance(20_000);
    return new Gate<string>();
  }

  it("soft first: the stale value at the soft limit, and the load goes on", async () => {
    const gate = await withOldValue();
    const caller = bench.load(gate.load, { ...old, softTimeout: 1, hardTimeout: 5 });
    await bench.clock.advance(999);
    await bench.clock.advance(1);
    expect(await caller).toMatchObject({ value: "old", source: "stale" });
    await gate.finish("new");
    expect(bench.space.peek("k")).toBe("new");
  });

  it("without a stale value: the hard limit counts from the beginning of the call", async () => {
    const gate = new Gate<string>();
    let rejectedAt: number | undefined;
    const begun = bench.clock.now();
    const caller = bench.value(gate.load, { softTimeout: 1, hardTimeout: 5 }).catch((error: unknown) => {
      rejectedAt = bench.clock.now() - begun;
      return error;
    });
    await bench.clock.advance(10_000);
    expect(await caller).toMatchObject({ code: "LOAD_TIMEOUT", message: expect.stringContaining("(5 s)") });
    expect(rejectedAt).toBe(5_000);
    await gate.finish("late");
    expect(bench.space.peek("k")).toBe("late");
  });

  it("hard before soft: the hard limit, and stale_if_error covers it", async () => {
    const gate = await withOldValue();
    const caller = bench.load(gate.load, { ...old, softTimeout: 5, hardTimeout: 1 });
    await bench.clock.advance(1_000);
    expect(await caller).toMatchObject({ value: "old", source: "stale" });
    expect(bench.reported).toMatchObject([{ code: "LOAD_TIMEOUT" }]);
    await gate.finish("new");
  });

  it("both at the same moment: the stale value", async () => {
    await bench.value(() => "old", { ttl: 10, staleWhileRevalidate: 60 });
    await bench.clock.advance(20_000);
    const gate = new Gate<string>();
    const caller = bench.load(gate.load, { ...old, staleIfError: 60, softTimeout: 1, hardTimeout: 1 });
    await bench.clock.advance(1_000);
    expect(await caller).toMatchObject({ value: "old", source: "stale" });
    await gate.finish("new");
  });

  it("a value invalidated after the load began is not the stale answer", async () => {
    const gate = await withOldValue();
    const caller = bench
      .value(gate.load, { ...old, softTimeout: 1, hardTimeout: 5 })
      .catch((error: unknown) => error);
    await settle();
    await bench.space.delete(["k"]);
    await bench.clock.advance(5_000);
    expect(await caller).toMatchObject({ code: "LOAD_TIMEOUT" });
    await gate.finish("late");
  });

  it("a value stored by others meanwhile is the answer at the soft limit", async () => {
    const gate = new Gate<string>();
    const caller = bench.load(gate.load, { softTimeout: 1 });
    await settle();
    await bench.space.set("k", "theirs", { ttlMs: 60_000, staleMs: 0, tags: [] });
    await bench.clock.advance(1_000);
    expect(await caller).toMatchObject({ value: "theirs", source: "store" });
    await gate.finish("mine");
    expect(bench.space.peek("k")).toBe("theirs");
  });

  it("leave no timer behind when the load is in time", async () => {
    const gate = new Gate<string>();
    const caller = bench.value(gate.load, { softTimeout: 1, hardTimeout: 5 });
    await gate.finish("value");
    await caller;
    // The sweep of the store is the one that stays.
    expect(bench.clock.pending).toBe(1);
  });
});

describe("the window of stale answers", () => {
  it("a failed load is answered within staleIfError only, whatever staleWhileRevalidate allows", async () => {
    const options = { ttl: 10, staleIfError: 5, staleWhileRevalidate: 600 };
    await bench.value(() => "old", options);
    await bench.clock.advance(40_000);
    const failing = () => Promise.reject(new Error("down"));
    await expect(bench.value(failing, { ...options, forceLoad: true })).rejects.toThrow("down");
    expect(await bench.value(failing, options)).toBe("old");
  });

  it("a failed refresh in the background is reported, whatever it was rejected with", async () => {
    const options = { ttl: 10, staleWhileRevalidate: 600 };
    await bench.value(() => "old", options);
    await bench.clock.advance(40_000);
    const odd = Object.create(null) as unknown;
    expect(await bench.value(() => Promise.reject(odd), options)).toBe("old");
    await settle();
    expect(bench.reported).toMatchObject([{ cause: odd }]);
  });

  it("a refresh in the background is joined by a caller without a window", async () => {
    const options = { ttl: 10, staleWhileRevalidate: 600 };
    await bench.value(() => "old", options);
    await bench.clock.advance(40_000);
    const gate = new Gate<string>();
    expect(await bench.value(gate.load, options)).toBe("old");
    const waiting = bench.value(gate.load, { staleWhileRevalidate: 0 });
    await gate.finish("new");
    expect(await waiting).toBe("new");
    expect(gate.calls).toBe(1);
  });
});

describe("lock: false", () => {
  it("still runs one load for the callers of this process", async () => {
    const gate = new Gate<number>();
    const callers = [bench.value(gate.load, { lock: false }), bench.value(gate.load, { lock: false })];
    await gate.finish(1);
    expect(await Promise.all(callers)).toEqual([1, 1]);
    expect(gate.calls).toBe(1);
  });

  it("is what the store is asked with, and no permission means nothing is stored", async () => {
    const admit = vi.fn(() => ({ ticket: undefined }));
    bench.broken = { admit };
    expect(await bench.value(() => "mine", { lock: false })).toBe("mine");
    expect(admit).toHaveBeenCalledWith("k", expect.objectContaining({ lock: false }));
    expect(bench.stored).toEqual([]);
  });
});

describe("a load that asks the cache", () => {
  it("for another key gets it, also one that is just being loaded", async () => {
    const gate = new Gate<string>();
    const first = bench.value(gate.load, undefined, "base");
    const nested = bench.value(async () => `${await bench.value(gate.load, undefined, "base")} and more`);
    await gate.finish("base");
    expect([await first, await nested]).toEqual(["base", "base and more"]);
    expect(gate.calls).toBe(1);
  });

  it("for its own key is told at once, instead of waiting for itself for ever", async () => {
    const selfish = (): Promise<unknown> => bench.value(selfish);
    const error = await bench.value(selfish).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      code: "ARGUMENT_INVALID",
      operation: "getOrSet",
      message: 'load must not ask for the key it loads, got a getOrSet of "k" in its own load',
    });
    expect(await bench.value(() => "works again")).toBe("works again");
  });

  it("for its own key with forceLoad or a window is told as well, not loaded again and again", async () => {
    let runs = 0;
    const forcing = (): Promise<unknown> => {
      runs++;
      return bench.value(forcing, { forceLoad: true, staleWhileRevalidate: 5 });
    };
    await expect(bench.value(forcing)).rejects.toThrow("in its own load");
    expect(runs).toBe(1);
  });

  it("for the same key of another namespace is not mistaken for its own", async () => {
    const other = new Bench();
    expect(await bench.value(() => other.value(() => "theirs"))).toBe("theirs");
  });

  it("another caller at the same time is not mistaken for the load", async () => {
    const gate = new Gate<string>();
    const first = bench.value(gate.load);
    await settle();
    const second = bench.value(gate.load);
    await gate.finish("value");
    expect(await Promise.all([first, second])).toEqual(["value", "value"]);
  });

  it("for its own key after it has waited for something else is bound by hardTimeout", async () => {
    const late = async (): Promise<unknown> => {
      await settle();
      return bench.value(late);
    };
    const caller = bench.value(late, { hardTimeout: 1 }).catch((error: unknown) => error);
    await settle();
    await bench.clock.advance(1_000);
    expect(await caller).toMatchObject({ code: "LOAD_TIMEOUT" });
  });
});
