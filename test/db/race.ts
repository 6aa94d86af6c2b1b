// Readers and writers of one row who clash at random, and a checker of what the readers were shown.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CacheForSessions } from "../../src/core/db-session.ts";
import { seededRandom } from "../../src/testing/manual-clock.ts";
import type { UserSession, UserTransaction } from "./library-rules.ts";

/** Moments are numbers of events: whatever began after something else had returned has a greater one. */
interface Write {
  readonly began: number;
  returned: number;
  isCommitted: boolean;
}

interface RaceOutcome {
  readonly violations: readonly string[];
  readonly commits: number;
  readonly reads: number;
}

interface RacePlan {
  /** Default: that of this run. */
  readonly seed?: number;
  /** Each is used by one task. */
  readonly readers: readonly UserSession[];
  readonly writers: readonly UserSession[];
  /** How many transactions each writer makes. */
  readonly rounds: number;
}

/** The seed of this run: XCACHE_TEST_SEED repeats it. */
export const raceSeed = Number(process.env.XCACHE_TEST_SEED ?? Math.floor(Math.random() * 1e9));

/** For messages. */
export const RACE_AGAIN = `XCACHE_TEST_SEED=${raceSeed} repeats it`;

/** The row holds `first` before it begins. */
export async function race(first: string, plan: RacePlan): Promise<RaceOutcome> {
  const random = seededRandom(plan.seed ?? raceSeed);
  const writes = new Map<string, Write>([[first, { began: 0, returned: 0, isCommitted: true }]]);
  const violations: string[] = [];
  let [now, reads, isOver] = [0, 0, false];

  const write = async (session: UserSession): Promise<void> => {
    const value = `value ${writes.size}`;
    const made: Write = { began: ++now, returned: Number.POSITIVE_INFINITY, isCommitted: false };
    writes.set(value, made);
    const way = random();
    const isUndone = way >= 0.3 && random() < 0.3;
    if (way < 0.15) await session.write(value);
    else if (way < 0.3) await session.writeRaw(value);
    else await session.transaction((own) => writeIn(own, value, isUndone, way)).catch(unlessUndone);
    made.isCommitted = !isUndone;
    made.returned = ++now;
  };

  const writeIn = async (
    own: UserTransaction,
    value: string,
    isUndone: boolean,
    way: number,
  ): Promise<void> => {
    if (way < 0.5) await own.read();
    if (way < 0.9) await own.write(value);
    else await own.nested((inner) => inner.write(value) as Promise<void>);
    if (way > 0.7 && (await own.read()) !== value)
      violations.push(`the transaction of ${value} read another`);
    if (isUndone) throw UNDONE;
  };

  const read = async (session: UserSession, isPlain = random() < 0.8): Promise<void> => {
    const began = ++now;
    let value = "";
    if (isPlain) value = await session.read();
    else {
      await session.transaction(async (own) => {
        value = await own.read();
      });
    }
    reads++;
    const wrong = whatIsWrong(value, began, writes);
    if (wrong !== undefined) violations.push(wrong);
  };

  // Before the first write and after the last, so that no order of events hides a cache that is never invalidated.
  const readAll = () => Promise.all(plan.readers.map((session) => read(session, true)));

  await readAll();
  const readers = plan.readers.map(async (session) => {
    while (!isOver) await read(session);
  });
  const writers = plan.writers.map(async (session) => {
    for (let round = 0; round < plan.rounds; round++) await write(session);
  });
  await Promise.all(writers).finally(() => {
    isOver = true;
  });
  await Promise.all(readers);
  await readAll();
  const commits = [...writes.values()].filter(({ isCommitted }) => isCommitted).length - 1;
  return { violations, commits, reads };
}

/** Why a read that began then must not have shown this. */
function whatIsWrong(value: string, began: number, writes: ReadonlyMap<string, Write>): string | undefined {
  const shown = writes.get(value);
  if (shown === undefined) return `${value} was never written`;
  if (!shown.isCommitted && shown.returned < Number.POSITIVE_INFINITY) return `${value} was rolled back`;
  for (const [other, { began: start, returned, isCommitted }] of writes) {
    if (isCommitted && returned < began && shown.returned < start) return `${value} was shown after ${other}`;
  }
  return undefined;
}

const UNDONE = new Error("undone");

function unlessUndone(error: unknown): void {
  if (error !== UNDONE) throw error;
}

/** A cache that takes its time, now and then, so that others come between. */
export function slowCache(
  cache: CacheForSessions,
  seed: number,
): CacheForSessions & { readonly loads: number } {
  const random = seededRandom(seed);
  const pause = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 4); turns > 0; turns--) await nextTurn();
  };
  let loads = 0;
  return {
    get loads() {
      return loads;
    },
    async get(key) {
      await pause();
      return cache.get(key);
    },
    async getOrSet(key, load, options) {
      await pause();
      const slow = async () => {
        loads++;
        const value = await load({} as never);
        await pause();
        return value;
      };
      return cache.getOrSet(key, slow, options);
    },
    async invalidateTags(tags) {
      await pause();
      await cache.invalidateTags(tags);
    },
  };
}
