import { describe, expect, it } from "vitest";
import type { KeyedRecord } from "../../../src/core/backend.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import { Outbox, type PendingInvalidation } from "../../../src/core/invalidation/outbox.ts";
import { asRefusal, markLoss, markTransient } from "../../../src/core/resilience/store-failure.ts";
import { ManualClock, settle } from "../../../src/testing/manual-clock.ts";

const ROOT = "p!n";

/** A store that records its calls and fails on demand. */
class Recorded {
  readonly done: string[] = [];
  fault: Error | undefined;
  during: (() => void) | undefined;
  isTransferring = false;
  /** What every reply waits for. */
  answering: Promise<void> | undefined;

  now(): number {
    return 0;
  }

  async write({ key }: KeyedRecord): Promise<void> {
    this.#act(`stamp ${key}`);
    await this.answering;
  }

  async take(key: string): Promise<undefined> {
    this.#act(`take ${key}`);
    await this.answering;
  }

  #act(what: string): void {
    this.during?.();
    if (this.fault !== undefined) throw this.fault;
    this.done.push(what);
  }
}

function setUp(): {
  clock: ManualClock;
  store: Recorded;
  outbox: Outbox;
  reported: Error[];
  delivered: string[];
  owed: string[];
} {
  const clock = new ManualClock();
  const store = new Recorded();
  const reported: Error[] = [];
  const delivered: string[] = [];
  const owed: string[] = [];
  const outbox = new Outbox({
    records: store,
    clock,
    operationTimeoutMs: 1_000,
    isTransferring: () => store.isTransferring,
    report: (error) => reported.push(error),
    onPending: (key) => owed.push(key),
    onDelivered: ({ key }) => delivered.push(key),
  });
  return { clock, store, outbox, reported, delivered, owed };
}

const removal = (key: string): PendingInvalidation => ({ key, stampMs: undefined, root: ROOT });
const stamp = (key: string): PendingInvalidation => ({ key, stampMs: 1_000, root: ROOT });

describe("unconfirmed invalidations", () => {
  it("are announced once the store has confirmed them, not before", async () => {
    const { store, outbox, delivered } = setUp();
    outbox.add([removal("a")]);
    store.fault = new ConnectionError("down");
    await outbox.deliverAll();
    expect(delivered).toEqual([]);
    store.fault = undefined;
    await outbox.deliverAll();
    expect(delivered).toEqual(["a"]);
  });

  it("are delivered once, a tag's after its group's", async () => {
    const { store, outbox } = setUp();
    outbox.add([{ ...removal("t"), after: "g" }, stamp("g"), removal("b"), removal("b")]);
    await outbox.flush(["t", "b"]);
    expect(store.done.indexOf("stamp g")).toBeLessThan(store.done.indexOf("take t"));
    expect(store.done).toHaveLength(3);
    expect(outbox.size).toBe(0);
    expect(outbox.flush(["t", "b"])).toBeUndefined();
  });

  it("are sent again when their connection is lost, as long as there is time", async () => {
    const { clock, store, outbox } = setUp();
    outbox.add([removal("a")]);
    store.fault = markLoss(new ConnectionError("lost"));
    let attempts = 0;
    store.during = () => {
      attempts++;
      if (attempts === 3) store.fault = undefined;
    };
    await outbox.flush(["a"]);
    expect(store.done).toEqual(["take a"]);

    outbox.add([removal("b")]);
    store.fault = markLoss(new ConnectionError("lost"));
    store.during = undefined;
    const failed = expect(outbox.flush(["b"])).rejects.toThrow("lost");
    await clock.advance(1_000);
    await failed;
    expect(outbox.size).toBe(1);
  });

  it("delay only the calls that they affect", async () => {
    const { store, outbox } = setUp();
    outbox.add([removal("a")]);
    expect(outbox.flush(["b"])).toBeUndefined();
    store.fault = new ConnectionError("down");
    await expect(outbox.flush(["b", "a"])).rejects.toBe(store.fault);
  });

  it("stay queued while the store is unreachable", async () => {
    const { store, outbox, reported } = setUp();
    outbox.add([removal("a")]);
    store.fault = new ConnectionError("down");
    await expect(outbox.flush(["a"])).rejects.toBe(store.fault);
    await outbox.deliverAll();
    expect(outbox.size).toBe(1);
    store.fault = undefined;
    await outbox.deliverAll();
    expect(store.done).toEqual(["take a"]);
    expect(reported).toEqual([]);
  });

  it("share one delivery", async () => {
    const { store, outbox } = setUp();
    outbox.add([removal("a")]);
    await Promise.all([outbox.flush(["a"]), outbox.flush(["a"]), outbox.deliverAll()]);
    expect(store.done).toEqual(["take a"]);
  });

  it("are delivered again when one for the same key arrives during a delivery", async () => {
    const { store, outbox } = setUp();
    outbox.add([removal("a")]);
    store.during = () => {
      store.during = undefined;
      outbox.add([removal("a")]);
    };
    await outbox.flush(["a"]);
    expect(outbox.size).toBe(1);
    await outbox.flush(["a"]);
    expect(store.done).toEqual(["take a", "take a"]);
  });

  it("become one invalidation of the namespace when there are too many", async () => {
    const { store, outbox, owed } = setUp();
    outbox.add(Array.from({ length: 10_001 }, (_, at) => removal(`k${at}`)));
    expect(outbox.size).toBe(1);
    expect([owed[0], owed.at(-1)]).toEqual(["k0", ROOT]);
    await outbox.deliverAll();
    expect(store.done).toEqual([`stamp ${ROOT}`]);
  });

  it("that the store refuses are reported, and the namespace is invalidated instead", async () => {
    const { store, outbox, reported } = setUp();
    outbox.add([removal("a")]);
    const refusal = new BackendError("STORE_FAILED", "no permission");
    store.fault = refusal;
    store.during = () => {
      if (reported.length > 0) store.fault = undefined;
    };
    await outbox.flush(["a"]);
    expect(reported).toEqual([refusal]);
    expect(store.done).toEqual([`stamp ${ROOT}`]);
    expect(outbox.size).toBe(0);
  });

  it("are dropped when the store refuses even that, so that they do not block callers forever", async () => {
    const { store, outbox, reported } = setUp();
    outbox.add([removal("a")]);
    store.fault = new BackendError("STORE_FAILED", "no permission");
    await outbox.flush(["a"]);
    expect(outbox.size).toBe(0);
    expect(reported).toHaveLength(2);
  });

  it("that the store refuses while the namespace's is in flight invalidate the namespace once more", async () => {
    const { store, outbox } = setUp();
    outbox.add([stamp(ROOT)]);
    let answer = (): void => {};
    store.answering = new Promise((resolve) => {
      answer = resolve;
    });
    const earlier = outbox.flush([ROOT]);
    outbox.add([removal("a")]);
    store.fault = new BackendError("STORE_FAILED", "no permission");
    store.during = () => {
      store.during = () => {
        store.fault = undefined;
      };
    };
    const later = outbox.flush(["a"]);
    await settle();
    answer();
    await Promise.all([earlier, later]);
    await outbox.deliverAll();
    expect(store.done).toEqual([`stamp ${ROOT}`, `stamp ${ROOT}`]);
    expect(outbox.size).toBe(0);
  });

  it("that the store refuses temporarily stay queued", async () => {
    const { store, outbox, reported } = setUp();
    outbox.add([removal("a")]);
    store.fault = markTransient(asRefusal(new BackendError("STORE_FAILED", "no changes now")));
    await expect(outbox.flush(["a"])).rejects.toBe(store.fault);
    expect(outbox.size).toBe(1);
    store.fault = undefined;
    await outbox.flush(["a"]);
    expect(store.done).toEqual(["take a"]);
    expect(reported).toEqual([]);
  });

  it("are retried when the store never replies", async () => {
    const { clock, store, outbox } = setUp();
    outbox.add([removal("a")]);
    store.answering = new Promise(() => {});
    const settled = expect(outbox.flush(["a"])).rejects.toBeInstanceOf(OperationTimeoutError);
    await clock.advance(1_000);
    await settled;
    store.answering = undefined;
    await outbox.flush(["a"]);
    expect(store.done).toEqual(["take a", "take a"]);
    expect(outbox.size).toBe(0);
  });

  it("do not time out while the store is receiving or sending data", async () => {
    const { clock, store, outbox } = setUp();
    outbox.add([removal("a")]);
    let answer = (): void => {};
    store.answering = new Promise((resolve) => {
      answer = resolve;
    });
    store.isTransferring = true;
    let outcome = "pending";
    const flushed = outbox.flush(["a"])?.then(
      () => (outcome = "delivered"),
      () => (outcome = "late"),
    );
    await clock.advance(5_000);
    expect(outcome).toBe("pending");
    answer();
    await flushed;
    expect(outcome).toBe("delivered");
  });
});
