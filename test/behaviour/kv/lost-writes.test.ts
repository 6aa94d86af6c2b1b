// A replica that lacks acknowledged writes takes over: invalidated entries do not come back with it.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { XCache } from "../../../src/xcache.ts";
import { type Fleet, startClusterFleet, startSentinelFleet } from "../../support/kv/lossy-failover.ts";
import { Watcher } from "../../support/kv/watcher.ts";
import { soon } from "../../support/pace.ts";
import { until } from "../../support/until.ts";
import { Gate } from "../cache/gate.ts";

/** How long another process may see lost changes undone: until the issuer has found the new master and repeated them. */
const REPEATED_WITHIN_MS = 5_000;
/** More changes than a process remembers. */
const TOO_MANY = 50_001;

interface Case {
  readonly what: string;
  /** Invalidates "k", which is stored, and "k-loaded", which is being loaded. */
  change(cache: XCache): Promise<unknown>;
  /** Whether unrelated entries stay. */
  readonly keepsOthers: boolean;
}

const CASES: readonly Case[] = [
  { what: "delete", change: (cache) => cache.delete(["k", "k-loaded"]), keepsOthers: true },
  {
    what: "set",
    change: async (cache) => {
      await cache.set("k", "new");
      await cache.setMany([["k-loaded", "new"]]);
    },
    keepsOthers: true,
  },
  { what: "invalidateTags", change: (cache) => cache.invalidateTags("t"), keepsOthers: true },
  { what: "invalidatePattern", change: (cache) => cache.invalidatePattern("k*"), keepsOthers: true },
  { what: "clear", change: (cache) => cache.clear(), keepsOthers: false },
  {
    what: "delete, and then more deletes than are remembered",
    change: async (cache) => {
      await cache.delete(["k", "k-loaded"]);
      await cache.delete(Array.from({ length: TOO_MANY }, (_, at) => `absent-${at}`));
    },
    keepsOthers: false,
  },
];

/** One case in its own namespace. To the store, each cache is a separate process. */
class Scene {
  readonly name: string;
  readonly case: Case;
  readonly issuer: XCache;
  readonly others: readonly XCache[];
  /** The caches that read all the time. */
  readonly watchers: readonly Watcher[];
  /** The issuer, if it does. */
  readonly issuing: Watcher | undefined;
  readonly #open: (config?: CacheConfig) => XCache;
  readonly #load = new Gate<string>();
  #loaded: Promise<unknown> = Promise.resolve();

  constructor(of: Case, url: string, isIdle: boolean) {
    this.case = of;
    this.name = `${of.what}, by a process that ${isIdle ? "then does nothing" : "goes on reading"}`;
    this.#open = (config = {}) =>
      new XCache({
        kvUrl: url,
        keyPrefix: this.name,
        defaultTtl: 600,
        circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 },
        // No deadline is tested here, and a busy machine may miss a short one. Also long enough for TOO_MANY deletes.
        operationTimeout: 10,
        ...config,
      });
    this.issuer = this.#open({ nearCache: true });
    this.others = [this.#open({ nearCache: true }), this.#open()];
    this.issuing = isIdle ? undefined : new Watcher(this.issuer, "k");
    this.watchers = this.others.map((other) => new Watcher(other, "k"));
    if (this.issuing !== undefined) this.watchers = [...this.watchers, this.issuing];
  }

  get caches(): readonly XCache[] {
    return [this.issuer, ...this.others];
  }

  /** All entries are stored by a process that then ends, so that it cannot repeat anything. */
  async prepare(): Promise<void> {
    const setter = this.#open();
    await setter.set("k", "old", { tags: ["t"] });
    await setter.set("other", "kept", { tags: ["u"] });
    await setter.disconnect();
    for (const cache of this.caches) {
      expect(await cache.get("k")).toBe("old");
      expect(await cache.get("other")).toBe("kept");
    }
    this.#loaded = this.others[0]!.getOrSet("k-loaded", this.#load.load, { tags: ["t"] });
    await until(() => this.#load.calls === 1, { what: "the load is running" });
  }

  /** Resolves when the master has acknowledged it. */
  async change(): Promise<void> {
    await this.case.change(this.issuer);
    for (const watcher of this.watchers) watcher.start();
  }

  /** The load that began before the change ends; resolves with what its caller got. */
  async endLoad(): Promise<unknown> {
    await this.#load.finish("old");
    return this.#loaded;
  }

  /** Another process, which has seen none of this. */
  late(): XCache {
    return this.#open();
  }

  async stop(): Promise<void> {
    for (const watcher of this.watchers) await watcher.stop();
    for (const cache of this.caches) await cache.disconnect();
  }
}

describe.each([
  { behind: "sentinels", start: startSentinelFleet, isOneServer: true },
  { behind: "a cluster", start: startClusterFleet, isOneServer: false },
])("behind $behind, an acknowledged change that a failover has lost", ({ start, isOneServer }) => {
  let fleet: Fleet;
  let scenes: readonly Scene[] = [];
  let promotedAt = 0;

  beforeAll(async () => {
    fleet = await start();
    scenes = [true, false].flatMap((isIdle) => CASES.map((of) => new Scene(of, fleet.url, isIdle)));
    for (const scene of scenes) await scene.prepare();
    await fleet.cutReplication();
    for (const scene of scenes) await scene.change();
    await fleet.failOver();
    promotedAt = performance.now();
    for (const { watchers } of scenes) {
      for (const watcher of watchers) await watcher.losesSightOf("old", promotedAt);
    }
  });
  afterAll(async () => {
    for (const scene of scenes) await scene.stop();
    await fleet?.stop();
  });

  it("never appears undone to the process that made it", () => {
    for (const { issuing, name } of scenes) expect(issuing?.lastSightOf("old"), name).toBeUndefined();
  });

  it("appears undone to others for at most a few seconds, even while the cache that made it is idle", () => {
    for (const { watchers, name } of scenes) {
      for (const watcher of watchers) {
        const undoneForMs = (watcher.lastSightOf("old") ?? promotedAt) - promotedAt;
        expect(undoneForMs, name).toBeLessThan(soon(REPEATED_WITHIN_MS));
      }
    }
  });

  it("is not undone by a load that began before it and ends afterwards", async () => {
    for (const scene of scenes) {
      expect(await scene.endLoad(), scene.name).toBe("old");
      for (const cache of scene.caches) expect(await cache.get("k-loaded"), scene.name).not.toBe("old");
    }
  });

  it("stays in effect for every process, including later ones", async () => {
    for (const scene of scenes) {
      const late = scene.late();
      for (const cache of [...scene.caches, late]) expect(await cache.get("k"), scene.name).not.toBe("old");
      await late.disconnect();
    }
  });

  it("is repeated individually; if it may have been forgotten, the namespace is cleared", async () => {
    for (const scene of scenes) {
      const other = scene.case.keepsOthers ? "kept" : undefined;
      for (const cache of scene.caches) expect(await cache.get("other"), scene.name).toBe(other);
    }
  });

  it("leaves the cache fully working", async () => {
    for (const { issuer, others, name } of scenes) {
      await issuer.set("k", "again", { tags: ["t"] });
      expect(await others[1]!.get("k"), name).toBe("again");
      await issuer.invalidateTags("t");
      expect(await issuer.get("k"), name).toBeUndefined();
      // In other processes once the push has arrived; in a cluster, another server's reply does not wait for it.
      if (isOneServer) expect(await others[1]!.get("k"), name).toBeUndefined();
      else
        await until(async () => (await others[1]!.get("k")) === undefined, { what: name, timeoutMs: 1_000 });
    }
  });
});
