// The code of shared stores cannot be imported for a while, such as when the process has too many files open.
import { beforeEach, describe, expect, it, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { sharedCode } from "../../../src/cache/deferred-store.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { XCache } from "../../../src/xcache.ts";

const PATH = "../../../src/cache/open-shared.ts";

let backend: ChaosBackend;
let cache: XCache;

beforeEach(async () => {
  sharedCode.loaded = undefined;
  vi.doMock(PATH, () => {
    throw new Error("EMFILE: too many open files");
  });
  backend = new ChaosBackend(new MemoryBackend());
  cache = new XCache({ backend });
});

describe("while the code of shared stores cannot be imported", () => {
  it("a call fails with a typed error, and a cached function runs", async () => {
    await expect(cache.get("a")).rejects.toBeInstanceOf(BackendError);
    await expect(cache.set("a", 1)).rejects.toBeInstanceOf(BackendError);
    expect(await cache.getOrSet("a", () => "loaded")).toBe("loaded");
    expect(await cache.health()).toBe(false);
  });

  it("the cache can be disconnected, since nothing was opened", async () => {
    await cache.disconnect();
  });

  it("nothing is lost: the next call imports it again, and no call joins a load from before an invalidation", async () => {
    const sub = cache.namespace("sub");
    await expect(sub.get("a")).rejects.toBeInstanceOf(BackendError);
    vi.doUnmock(PATH);
    await cache.set("a", 1);
    expect(await cache.get("a")).toBe(1);
    const other = new XCache({ backend });
    const otherSub = other.namespace("sub");
    let answer: (value: string) => void = () => {};
    const begun = new Promise<void>((begin) => {
      void sub.getOrSet("k", () => {
        begin();
        return new Promise<string>((resolve) => {
          answer = resolve;
        });
      });
    });
    await begun;
    await otherSub.delete("k");
    const later = sub.getOrSet("k", () => "new");
    setImmediate(() => answer("old"));
    expect(await later).toBe("new");
    await Promise.all([cache.disconnect(), other.disconnect()]);
  });
});
