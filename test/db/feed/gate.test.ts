// The visibility gate on a real server. With a synchronous standby that is not there, a commit is in the stream but in no
// snapshot until somebody stops waiting: what takes microseconds otherwise takes as long as the test wants.
import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { feedStage, type Member, type MemberOptions } from "./feed-stage.ts";

const stage = feedStage();
/** Far more than it takes, for a machine that is busy with something else. */
/** Whether the connection's commit waits for a standby. */
async function waits(pid: number | undefined): Promise<boolean> {
  const found = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'";
  return (await stage.outside.query(found, [pid])).rowCount === 1;
}

/** From now on commits wait for a standby that is not there; the server's checkpointer decides from when on. */
async function holdCommits(): Promise<void> {
  const prober = await stage.outsider();
  const { rows } = await prober.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  await stage.outside.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await stage.outside.query("SELECT pg_reload_conf()");
  let isCommitting = false;
  const probe = async (): Promise<void> => {
    isCommitting = true;
    await prober.query("SELECT pg_logical_emit_message(true, 'probe', '')");
    isCommitting = false;
  };
  await until(
    async () => {
      if (await waits(rows[0]?.pid)) return true;
      if (!isCommitting) probe().catch(() => {});
      return false;
    },
    { what: "commits wait for a standby" },
  );
}

/** Commits what no snapshot sees yet. Returns what makes it visible. */
async function invisibleCommit(app: Member): Promise<() => Promise<unknown>> {
  const { outside } = stage;
  const writer = await stage.outsider();
  const { rows } = await writer.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  await holdCommits();
  const { position } = app.feed.status();
  const committing = writer.query("UPDATE users SET name = 'Ada' WHERE id = 1");
  await until(() => waits(rows[0]?.pid), { what: "the commit waits" });
  await until(() => app.feed.status().position !== position, { what: "the stream has sent it" });
  return async () => {
    await outside.query("ALTER SYSTEM RESET synchronous_standby_names");
    await outside.query("SELECT pg_reload_conf()");
    await committing;
  };
}

/**
 * Reads between the commit and its visibility, as any reader may after an invalidation, and again long after. `early`: how
 * much was invalidated before it was visible.
 */
async function readAround(
  options: MemberOptions,
): Promise<{ readonly early: number; readonly later: unknown }> {
  await stage.outside.query(
    "CREATE TABLE orders (id int PRIMARY KEY); ALTER PUBLICATION xcache ADD TABLE orders",
  );
  const app = await stage.member({ silentFor: 8, ...options });
  expect(await app.name()).toBe("u1");
  const show = await invisibleCommit(app);
  // The feed looks at what waits again and again, and proves that it is alive.
  let { silence = 0 } = app.feed.status();
  for (let proof = 0; proof < 2; proof++) {
    await until(
      () => {
        const [before, now] = [silence, app.feed.status().silence ?? 0];
        silence = now;
        return now < before;
      },
      { what: "the feed proves that it is alive" },
    );
  }
  const early = app.feed.status().invalidations;
  expect(await app.name()).toBe("u1");
  await show();
  await stage.outside.query("INSERT INTO orders VALUES (1)");
  await until(() => app.feed.status().invalidations === 2, { what: "a later commit was invalidated" });
  return { early, later: await app.name() };
}

test("an invisible commit is not invalidated, and the feed is alive meanwhile; once visible it is", async () => {
  expect(await readAround({})).toEqual({ early: 0, later: "Ada" });
});

test("without the gate the old row is stored again, for its whole ttl", async () => {
  expect(await readAround({ internals: { isVisible: () => true } })).toEqual({ early: 1, later: "u1" });
});
