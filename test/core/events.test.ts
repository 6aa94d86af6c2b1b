import { describe, expect, it, vi } from "vitest";
import { CACHE_EVENTS, type CacheEvent, Emitter, toError } from "../../src/core/events.ts";
import { settle } from "../../src/testing/manual-clock.ts";

describe("an emitter", () => {
  it("knows for every event whether there is a listener, so that no event is built for nobody", () => {
    const emitter = new Emitter();
    const listener = (): void => {};
    expect(Object.keys(emitter.on)).toEqual(CACHE_EVENTS);
    for (const event of CACHE_EVENTS) {
      expect(emitter.on[event]).toBeUndefined();
      emitter.add(event, listener);
      emitter.add(event, listener);
      expect(emitter.on[event]).toHaveLength(2);
      emitter.remove(event, listener);
      emitter.remove(event, listener);
      expect(emitter.on[event]).toBeUndefined();
    }
  });

  it("notifies every listener of that event and no other", () => {
    const emitter = new Emitter();
    const heard: CacheEvent[] = [];
    for (const event of CACHE_EVENTS) emitter.add(event, () => heard.push(event));
    emitter.emit("hit", { key: "k" });
    emitter.emit("state", { what: "connection", state: "connected" });
    expect(heard).toEqual(["hit", "state"]);
  });

  it("ignores the removal of a listener that was never added", () => {
    const emitter = new Emitter();
    const listener = vi.fn();
    emitter.add("hit", listener);
    emitter.remove("hit", () => {});
    emitter.remove("miss", listener);
    emitter.emit("hit", { key: "k" });
    expect(listener).toHaveBeenCalledExactlyOnceWith({ key: "k" });
  });

  it("removes the later registration first when a listener was added twice", () => {
    const emitter = new Emitter();
    const order: string[] = [];
    const twice = (): void => void order.push("twice");
    emitter.add("hit", twice);
    emitter.add("hit", () => order.push("between"));
    emitter.add("hit", twice);
    emitter.remove("hit", twice);
    emitter.emit("hit", { key: "k" });
    expect(order).toEqual(["twice", "between"]);
  });

  it("turns whatever a listener throws or rejects with into an error event that names its event", async () => {
    const emitter = new Emitter();
    const reported: unknown[] = [];
    emitter.add("error", (event) => reported.push(event));
    const failure = new Error("thrown");
    emitter.add("hit", () => {
      throw failure;
    });
    emitter.add("hit", () => Promise.reject("text"));
    emitter.emit("hit", { key: "k" });
    await settle();
    expect(reported).toEqual([
      { error: failure, operation: "on(hit)" },
      { error: expect.objectContaining({ message: "text", cause: "text" }), operation: "on(hit)" },
    ]);
  });

  it("ignores an error listener that throws or rejects", async () => {
    const emitter = new Emitter();
    const broken = vi.fn(() => {
      throw new Error("again");
    });
    const rejecting = vi.fn(() => Promise.reject(new Error("again")));
    emitter.add("error", broken);
    emitter.add("error", rejecting);
    emitter.emit("error", { error: new Error("first"), operation: "get" });
    await settle();
    expect(broken).toHaveBeenCalledTimes(1);
    expect(rejecting).toHaveBeenCalledTimes(1);
  });
});

describe("toError", () => {
  it("returns errors as they are and keeps anything else as the cause", () => {
    const error = new TypeError("own");
    expect(toError(error)).toBe(error);
    expect(toError("text")).toMatchObject({ message: "text", cause: "text" });
    expect(toError(undefined)).toMatchObject({ message: "undefined" });
  });

  it.each([
    ["a symbol", Symbol("s")],
    ["an object without a prototype", Object.create(null)],
    [
      "an object whose toString throws",
      {
        toString: () => {
          throw new Error("no");
        },
      },
    ],
  ])("handles %s", (_name, thrown) => {
    expect(toError(thrown)).toBeInstanceOf(Error);
    expect(toError(thrown).cause).toBe(thrown);
  });
});
