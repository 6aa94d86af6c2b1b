import { beforeEach, describe, expect, it, vi } from "vitest";
import { ConfigError, ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import { settle } from "../../../src/testing/manual-clock.ts";
import { Gate } from "../../behaviour/cache/gate.ts";
import { LoadBench } from "./load-bench.ts";

let bench: LoadBench;
beforeEach(() => {
  bench = new LoadBench();
});

describe("soft and hard timeouts together", () => {
  const old = { ttl: 10, staleIfError: 60 };

  async function withOldValue(): Promise<Gate<string>> {
    await bench.value(() => "old", old);
    await bench.clock.advance(20_000);
    return new Gate<string>();
  }

  it("soft first: the stale value at the soft limit, while the load continues", async () => {
    const gate = await withOldValue();
    const caller = bench.load(gate.load, { ...old, softTimeout: 1, hardTimeout: 5 });
    await bench.clock.advance(999);
    await bench.clock.advance(1);
    expect(await caller).toMatchObject({ value: "old", source: "stale" });
    await gate.finish("new");
    expect(bench.space.peek("k")).toBe("new");
  });

  it("without a stale value: the hard limit counts from the start of the call", async () => {
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

  it("a value invalidated after the load began is not served stale", async () => {
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

  it("a value stored by others meanwhile is served at the soft limit", async () => {
    const gate = new Gate<string>();
    const caller = bench.load(gate.load, { softTimeout: 1 });
    await settle();
    await bench.space.set("k", "theirs", { ttlMs: 60_000, staleMs: 0, tags: [] });
    await bench.clock.advance(1_000);
    expect(await caller).toMatchObject({ value: "theirs", source: "store" });
    await gate.finish("mine");
    expect(bench.space.peek("k")).toBe("theirs");
  });

  it("a store that hangs neither keeps a caller beyond the hard limit nor is asked twice", async () => {
    const gate = new Gate<string>();
    let looks = 0;
    const begun = bench.clock.now();
    const caller = bench
      .value(gate.load, { ...old, softTimeout: 1, hardTimeout: 5 })
      .catch((error: unknown) => ({
        error,
        after: bench.clock.now() - begun,
      }));
    await settle();
    bench.broken.find = () => {
      looks++;
      return new Promise(() => {});
    };
    await bench.clock.advance(60_000);
    expect(await caller).toMatchObject({ error: { code: "LOAD_TIMEOUT" }, after: 5_000 });
    expect(looks).toBe(1);
    await gate.finish("late");
  });

  it("a load that ends while the store is asked for a stale value provides the answer", async () => {
    const gate = new Gate<string>();
    const caller = bench.value(gate.load, { ...old, softTimeout: 1 });
    await settle();
    bench.broken.find = () => new Promise(() => {});
    await bench.clock.advance(1_000);
    await gate.finish("new");
    expect(await caller).toBe("new");
  });

  it("a store that failed at the soft limit is not asked again when the load fails", async () => {
    const gate = new Gate<string>();
    let looks = 0;
    const caller = bench.value(gate.load, { ...old, softTimeout: 1 }).catch((error: unknown) => error);
    await settle();
    bench.broken.find = async () => {
      looks++;
      throw new ConnectionError("down");
    };
    await bench.clock.advance(1_000);
    const failure = new Error("no value");
    await gate.fail(failure);
    expect(await caller).toBe(failure);
    expect(looks).toBe(1);
  });

  it("a load that fails with another load's timeout is covered by stale_if_error like any other", async () => {
    await withOldValue();
    const nested = () => {
      throw new OperationTimeoutError("another load", { code: "LOAD_TIMEOUT", operation: "getOrSet" });
    };
    const loaded = await bench.load(nested, { ...old, softTimeout: 1, hardTimeout: 5 });
    expect(loaded).toMatchObject({ value: "old", source: "stale" });
  });

  it("leave no timer behind when the load finishes in time", async () => {
    const gate = new Gate<string>();
    const caller = bench.value(gate.load, { softTimeout: 1, hardTimeout: 5 });
    await gate.finish("value");
    await caller;
    // Only the store's sweep and the limit of loads remain.
    expect(bench.clock.pending).toBe(2);
  });
});

describe("the stale window", () => {
  it("a failed load is answered from within staleIfError only, whatever staleWhileRevalidate allows", async () => {
    const options = { ttl: 10, staleIfError: 5, staleWhileRevalidate: 600 };
    await bench.value(() => "old", options);
    await bench.clock.advance(40_000);
    const failing = () => Promise.reject(new Error("down"));
    await expect(bench.value(failing, { ...options, forceLoad: true })).rejects.toThrow("down");
    expect(await bench.value(failing, options)).toBe("old");
  });

  it("a failed background refresh is reported, whatever it was rejected with", async () => {
    const options = { ttl: 10, staleWhileRevalidate: 600 };
    await bench.value(() => "old", options);
    await bench.clock.advance(40_000);
    const odd = Object.create(null) as unknown;
    expect(await bench.value(() => Promise.reject(odd), options)).toBe("old");
    await settle();
    expect(bench.reported).toMatchObject([{ cause: odd }]);
  });

  it("a background refresh is joined by a caller without a window", async () => {
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
  it("still runs one load for the callers in this process", async () => {
    const gate = new Gate<number>();
    const callers = [bench.value(gate.load, { lock: false }), bench.value(gate.load, { lock: false })];
    await gate.finish(1);
    expect(await Promise.all(callers)).toEqual([1, 1]);
    expect(gate.calls).toBe(1);
  });

  it("is passed to the store, and without permission nothing is stored", async () => {
    const admit = vi.fn(() => ({ ticket: undefined }));
    bench.broken = { admit };
    expect(await bench.value(() => "mine", { lock: false })).toBe("mine");
    expect(admit).toHaveBeenCalledWith("k", expect.objectContaining({ lock: false }));
    expect(bench.stored).toEqual([]);
  });
});

describe("a load that calls the cache", () => {
  it("for another key gets it, even if that key is being loaded", async () => {
    const gate = new Gate<string>();
    const first = bench.value(gate.load, undefined, "base");
    const nested = bench.value(async () => `${await bench.value(gate.load, undefined, "base")} and more`);
    await gate.finish("base");
    expect([await first, await nested]).toEqual(["base", "base and more"]);
    expect(gate.calls).toBe(1);
  });

  it("for its own key fails immediately, instead of waiting for itself forever", async () => {
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

  it("for its own key with forceLoad or a window fails as well, instead of loading again and again", async () => {
    let runs = 0;
    const forcing = (): Promise<unknown> => {
      runs++;
      return bench.value(forcing, { forceLoad: true, staleWhileRevalidate: 5 });
    };
    await expect(bench.value(forcing)).rejects.toThrow("in its own load");
    expect(runs).toBe(1);
  });

  it("for the same key in another namespace is not mistaken for its own", async () => {
    const other = new LoadBench();
    expect(await bench.value(() => other.value(() => "theirs"))).toBe("theirs");
  });

  it("is not confused with another caller at the same time", async () => {
    const gate = new Gate<string>();
    const first = bench.value(gate.load);
    await settle();
    const second = bench.value(gate.load);
    await gate.finish("value");
    expect(await Promise.all([first, second])).toEqual(["value", "value"]);
  });

  it("for its own key after waiting for something else is limited by hardTimeout", async () => {
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
