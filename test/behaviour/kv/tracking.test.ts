// The server pushes a process its own changes too: if those were suppressed, another's change could be lost with them.
import { describe, expect, it } from "vitest";
import { settle } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { exchange } from "../../support/exchange.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const ROUNDS = 40;
const END = "that was all";

const caches = redisCaches({ nearCache: true });
const { open } = caches;

/** The commands that clients send the server meanwhile, as MONITOR shows them. */
async function sentDuring(work: () => Promise<void>): Promise<readonly string[]> {
  let begin: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const heard = exchange({ port: caches.server.port, timeoutMs: 10_000 }, "MONITOR\r\n", (text) => {
    if (text.startsWith("+OK")) begin();
    return text.includes(END);
  });
  await Promise.race([begun, heard]);
  await work();
  await caches.server.cli("echo", END);
  return (await heard).split("\r\n");
}

/** Both reach the server while it is frozen, `own` first, so that it executes them in one turn of its event loop. */
async function inOneCycle(own: () => Promise<unknown>, foreign: () => Promise<unknown>): Promise<void> {
  caches.server.freeze();
  const changes: Promise<unknown>[] = [];
  try {
    for (const change of [own, foreign]) {
      changes.push(change());
      for (let turn = 0; turn < 5; turn++) await settle();
    }
  } finally {
    caches.server.thaw();
  }
  await Promise.all(changes);
}

/** Reads until everything cacheable is cached in this process. */
async function warm(cache: XCache, key: string, value: unknown): Promise<void> {
  for (let read = 0; read < 3; read++) expect(await cache.get(key)).toBe(value);
}

/** A reply arrives after every push caused before it. */
const hearAll = (cache: XCache): Promise<unknown> => cache.exists("nothing");

describe("a change by this process and one by another in the same event loop turn of the server", () => {
  it("of one key: the near tier ends with what the other wrote", async () => {
    const [mine, other] = [open(), open()];
    for (let round = 0; round < ROUNDS; round++) {
      await mine.set("k", "old");
      await warm(mine, "k", "old");
      let finish: ((value: string) => void) | undefined;
      const load = (): Promise<string> =>
        new Promise((resolve) => {
          finish = resolve;
        });
      // It stores the loaded value without notifying the near tier, which the server does.
      const loading = mine.getOrSet("k", load, { forceLoad: true });
      const finished = await until(() => finish, { what: "the load has begun" });
      await inOneCycle(
        async () => finished("own"),
        () => other.set("k", "foreign"),
      );
      expect(await loading).toBe("own");
      await hearAll(mine);
      for (let read = 0; read < 3; read++) expect(await mine.get("k"), `in round ${round}`).toBe("foreign");
    }
  });

  it.each([true, false])(
    "of one stamp: entries invalidated by the other are not served (near cache %s)",
    async (nearCache) => {
      const [mine, other] = [open({ nearCache }), open({ nearCache })];
      for (let round = 0; round < ROUNDS; round++) {
        const tags = [`t${round}`];
        await mine.set("k", "old", { ttl: 60, tags });
        await warm(mine, "k", "old");
        await inOneCycle(
          // Extends the ttl of the stamp.
          () => mine.set("longer", 1, { ttl: 600, tags }),
          () => other.invalidateTags(tags),
        );
        await hearAll(mine);
        expect(await mine.get("k"), `in round ${round}`).toBeUndefined();
      }
    },
  );
});

describe("a process whose own load replaces a near copy", () => {
  it("sees the new value at once", async () => {
    const mine = open();
    await mine.set("k", "old");
    await warm(mine, "k", "old");
    expect(await mine.getOrSet("k", () => "own", { forceLoad: true })).toBe("own");
    for (let read = 0; read < 3; read++) expect(await mine.get("k")).toBe("own");
  });
});

describe("tracking as requested from the server", () => {
  it.each([true, false])(
    "does not leave out this process's own changes (near cache %s)",
    async (nearCache) => {
      const sent = await sentDuring(async () => {
        const cache = open({ nearCache });
        await cache.set("k", 1, { tags: ["t"] });
        await warm(cache, "k", 1);
      });
      const asked = sent.filter((line) => /"client" "tracking"/i.test(line));
      expect(asked.length).toBeGreaterThan(0);
      expect(asked.filter((line) => /noloop|bcast/i.test(line))).toEqual([]);
      // Each reading connection receives its own pushes, not through another one.
      expect(asked.filter((line) => /redirect/i.test(line))).toEqual([]);
    },
  );
});
