// Four processes with 250 callers each and one cold key: it is loaded once, and waiters hardly query the store.
import { describe, expect, test } from "vitest";
import { oneServer, REAL_STORES, type RealStore } from "../../support/kv/real-store.ts";
import { StampedeProcess, type StampedeSettings } from "../../support/kv/stampede-process.ts";
import { until } from "../../support/until.ts";

const PROCESSES = 4;
const CALLERS = 250;
const KEY = "cold";

/** How many commands that read records the stores received. */
async function recordCommands({ masters }: RealStore): Promise<number> {
  const stats = await Promise.all(masters.map((server) => server.cli("INFO", "commandstats")));
  const calls = [...stats.join("\n").matchAll(/cmdstat_(?:m?get|set|eval|evalsha):calls=(\d+)/g)];
  return calls.reduce((sum, [, count]) => sum + Number(count), 0);
}

type MemberSettings = Pick<StampedeSettings, "config" | "isClockStill">;

interface Stampede {
  /** What the processes report when a load ends. */
  readonly offered: readonly object[];
  /** The processes that loaded, each listed once per load. */
  readonly loaders: readonly number[];
  /** What all callers got. */
  readonly values: readonly unknown[];
}

/** All ask at once; `waiting` is called during the load, which ends when that resolves. */
async function stampede(settings: MemberSettings, waiting: () => Promise<void>): Promise<Stampede> {
  const members = Array.from(
    { length: PROCESSES },
    () => new StampedeProcess({ key: KEY, callers: CALLERS, ...settings }),
  );
  const offered = members.map((_, at) => ({ loadedBy: at, text: "\u00e9\0".repeat(100) }));
  try {
    await Promise.all(members.map((member) => member.heard("ready")));
    for (const member of members) member.tell({ ask: KEY });
    await Promise.all(members.map((member) => member.heard("asked")));
    await Promise.race(members.map((member) => member.heard("loading")));
    await waiting();
    for (const [at, member] of members.entries()) member.tell(offered[at]!);
    const answers = await Promise.all(members.map((member) => member.answered()));
    return {
      offered,
      loaders: answers.flatMap(({ loads }, at) => Array<number>(loads).fill(at)),
      values: answers.flatMap(({ values }) => values),
    };
  } finally {
    await Promise.all(members.map((member) => member.kill()));
  }
}

function expectOneLoad({ offered, loaders, values }: Stampede): void {
  expect(loaders).toHaveLength(1);
  expect(values).toEqual(Array(PROCESSES * CALLERS).fill(offered[loaders[0]!]));
}

/** Resolves when the holder of a lease has renewed it, which it does every second. */
async function renewal({ masters }: RealStore, key: string): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  await until(
    async () => {
      // Of the servers of a cluster one has the key, and the others say so.
      const life = Number(await Promise.any(masters.map((server) => server.cli("PTTL", key))));
      const isRenewed = life > least;
      least = Math.min(least, life);
      return isRenewed;
    },
    { what: "the lease is renewed" },
  );
}

/** Resolves when no process sends the store any more commands. */
async function silence(store: RealStore): Promise<void> {
  let before: number | undefined;
  await until(
    async () => {
      const commands = await recordCommands(store);
      const isSilent = commands === before;
      before = commands;
      return isSilent;
    },
    { what: "the store is left alone" },
  );
}

describe.each(REAL_STORES)("a stampede of four processes on %s", (_name, start) => {
  test("causes one load for all 1,000 callers, and while they wait the store is only polled now and then", async () => {
    await using store = await start();
    const config = { kvUrl: store.url, keyPrefix: "waiting" };
    let perSecond = Number.NaN;
    const outcome = await stampede({ config, isClockStill: false }, async () => {
      await renewal(store, `waiting:${KEY}`);
      const [began, before] = [performance.now(), await recordCommands(store)];
      await renewal(store, `waiting:${KEY}`);
      perSecond = ((await recordCommands(store)) - before) / ((performance.now() - began) / 1_000);
    });
    expectOneLoad(outcome);
    // Three processes wait; each polls four times a second, at most eight times, with two reads each time.
    expect(perSecond).toBeLessThan(60);
  });
});

test("waiters do not depend on polling: the store notifies them", async () => {
  await using store = await oneServer();
  const config = { kvUrl: store.url, keyPrefix: "notified" };
  const outcome = await stampede({ config, isClockStill: true }, () => silence(store));
  expectOneLoad(outcome);
  // No waiter polls before it is notified; the reads of one process in one tick are one command.
  expect(await recordCommands(store)).toBeLessThan(PROCESSES * 20);
});
