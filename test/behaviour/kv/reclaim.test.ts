// A dead entry is removed when a read finds it; an entry that replaced it meanwhile stays.
import { describe, expect, it } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { KeyedRecord, SwapResult } from "../../../src/core/backend.ts";
import type { StoreRecord, Token } from "../../../src/core/record.ts";
import type { XCache } from "../../../src/xcache.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";
import { Gate } from "../cache/gate.ts";

const caches = redisCaches({});
const { open } = caches;

/** Commands that remove a record wait until the test releases them. */
class HeldRemovals extends KvBackend {
  /** How many are waiting, and how many the server has executed. */
  waiting = 0;
  done = 0;
  readonly #released: Promise<void>;
  #release: () => void = () => {};

  constructor() {
    super({ kvUrl: caches.server.url });
    this.#released = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  override swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    const swap = (): Promise<SwapResult> => super.swap(key, expected, next);
    return next === undefined ? this.#later(swap) : swap();
  }

  override take(key: string): Promise<StoreRecord | undefined> {
    return this.#later(() => super.take(key));
  }

  override takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#later(() => super.takeMany(keys));
  }

  override removeMany(keys: readonly string[]): Promise<void> {
    return this.#later(() => super.removeMany(keys));
  }

  /** Resolves when the waiting one has been executed. */
  async letGo(): Promise<void> {
    this.#release();
    await until(() => this.done === this.waiting, { what: "it is carried out" });
  }

  async #later<T>(remove: () => Promise<T>): Promise<T> {
    this.waiting++;
    await this.#released;
    const removed = await remove();
    this.done++;
    return removed;
  }
}

const recordsOf = async (key: string): Promise<string> =>
  caches.server.cli("exists", `${caches.prefix}:${key}`);

async function drain(keys: AsyncIterable<string>): Promise<void> {
  for await (const key of keys) expect.unreachable(`${key} is listed`);
}

interface Case {
  readonly death: string;
  kill(cache: XCache): Promise<unknown>;
  readonly meeting: string;
  meet(cache: XCache): Promise<unknown>;
}

const byTag = { death: "invalidateTags", kill: (cache: XCache) => cache.invalidateTags("t") };
const byClear = { death: "clear", kill: (cache: XCache) => cache.clear() };

const CASES: readonly Case[] = [
  { ...byTag, meeting: "get", meet: async (cache) => expect(await cache.get("k")).toBeUndefined() },
  {
    ...byClear,
    meeting: "getMany",
    meet: async (cache) => expect((await cache.getMany(["k"])).size).toBe(0),
  },
  { ...byTag, meeting: "exists", meet: async (cache) => expect(await cache.exists("k")).toBe(false) },
  { ...byClear, meeting: "keys", meet: (cache) => drain(cache.keys()) },
];

describe.each(CASES)("an entry dead by $death and found by $meeting", ({ meet, kill }) => {
  /** Found dead, and about to be removed. */
  async function judged(): Promise<{ removals: HeldRemovals; mine: XCache; other: XCache }> {
    const removals = new HeldRemovals();
    const [mine, other] = [open({ backend: removals, nearCache: true }), open()];
    await other.set("k", "old", { tags: ["t"] });
    expect(await mine.get("k")).toBe("old");
    await kill(other);
    // A reply on this connection comes after the push.
    await mine.exists("nothing");
    await meet(mine);
    await until(() => removals.waiting === 1, { what: "it is about to be removed" });
    expect(await recordsOf("k")).toBe("1");
    return { removals, mine, other };
  }

  it("is removed", async () => {
    const { removals } = await judged();
    await removals.letGo();
    expect(await recordsOf("k")).toBe("0");
  });

  it("and set again before it is removed, stays", async () => {
    const { removals, mine, other } = await judged();
    await other.set("k", "new", { tags: ["t"] });
    await removals.letGo();
    expect(await recordsOf("k")).toBe("1");
    for (const cache of [mine, other]) expect(await cache.get("k")).toBe("new");
  });

  it("and being loaded before it is removed, leaves the load its lease", async () => {
    const { removals, mine, other } = await judged();
    const gate = new Gate<string>();
    const loading = other.getOrSet("k", gate.load);
    await until(() => gate.calls === 1, { what: "the load has begun" });
    await removals.letGo();
    await gate.finish("loaded");
    expect(await loading).toBe("loaded");
    for (const cache of [mine, other]) expect(await cache.get("k")).toBe("loaded");
  });
});
