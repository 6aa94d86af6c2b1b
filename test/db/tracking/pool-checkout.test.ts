// A connection is taken when it is needed, kept in between, and given back once.
import { beforeEach, describe, expect, test } from "vitest";
import type { SessionStatement, SessionTracker, TrackedConnection } from "../../../src/core/db-session.ts";
import { PoolCheckout } from "../../../src/db/tracking/pool-checkout.ts";

const lost = new Error("lost");
const run: TrackedConnection["run"] = (statement) => statement.execute();
const tracked: TrackedConnection = { run, settingsChanged: () => {} };

/** Answers `cached` without a connection, and tells of failures only when it is let go. */
function scene() {
  const log: string[] = [];
  let letGo = (): void => {};
  const told = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const tracker: SessionTracker = {
    connection: () => tracked,
    async pooled(_, { text }, acquire) {
      if (text === "cached") return "from the cache" as never;
      const { statement, release } = await acquire();
      try {
        return await statement.execute();
      } catch (error) {
        await told;
        throw error;
      } finally {
        release();
      }
    },
  };
  let taken = 0;
  const lease = new PoolCheckout<{ id: number }>(tracker, {
    pool: {},
    take: async () => {
      log.push(`take ${++taken}`);
      return { id: taken };
    },
    giveBack: ({ id }) => log.push(`give back ${id}`),
    track: () => tracked,
    isLost: (error) => error === lost,
  });
  const send = (text: string, failure?: Error): Promise<unknown> =>
    lease.run<unknown>({ text }, ({ id }): SessionStatement<unknown> => {
      const execute = async () => {
        log.push(`${text} on ${id}`);
        if (failure !== undefined) throw failure;
        return text;
      };
      return { text, execute };
    });
  return { log, lease, send, letGo };
}

describe("a lease", () => {
  let { log, lease, send, letGo } = scene();
  beforeEach(() => {
    ({ log, lease, send, letGo } = scene());
  });

  test("takes nothing for what is cached, and has nothing to give back", async () => {
    expect(await send("cached")).toBe("from the cache");
    lease.release();
    expect(log).toEqual([]);
  });

  test("keeps one connection from the first statement that needs it, in order, and gives it back at the end", async () => {
    const [first] = await Promise.all([send("cached"), send("begin"), send("cached"), send("commit")]);
    expect(first).toBe("from the cache");
    lease.release();
    await Promise.resolve();
    expect(log).toEqual(["take 1", "begin on 1", "cached on 1", "commit on 1", "give back 1"]);
  });

  test("that is over before its statement gives back when that is", async () => {
    const sending = send("slow");
    lease.release();
    await sending;
    await new Promise(setImmediate);
    expect(log).toEqual(["take 1", "slow on 1", "give back 1"]);
  });

  test("gives a lost connection back before the caller sees the error, and takes another", async () => {
    const failing = expect(send("update", lost)).rejects.toBe(lost);
    await new Promise(setImmediate);
    expect(log).toEqual(["take 1", "update on 1", "give back 1"]);
    letGo();
    await failing;
    await send("update");
    expect(log.slice(3)).toEqual(["take 2", "update on 2"]);
  });

  test("keeps a connection that was lost within a transaction, except by its commit", async () => {
    await send("begin");
    await expect(send("update", lost)).rejects.toBe(lost);
    await send("update");
    expect(log).toEqual(["take 1", "begin on 1", "update on 1", "update on 1"]);
    await expect(send("commit", lost)).rejects.toBe(lost);
    expect(log.at(-1)).toBe("give back 1");
  });
});
