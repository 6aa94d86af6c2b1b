// Runs one schedule from its beginning to rest, and judges it.
import { check, OWED_AT_LAST_MS, OWED_MS, type Violation } from "./checker.ts";
import type { Call, History, LoadRun } from "./history.ts";
import { isChange } from "./operations.ts";
import { drawPlan, type Plan } from "./plan.ts";
import { BREAKER_RESET_MS, BREAKER_THRESHOLD } from "./process.ts";
import { connectAll, deliverAll, pass, repeat, walk } from "./scheduler.ts";
import type { Step } from "./steps.ts";
import { settled } from "./turn.ts";
import { World } from "./world.ts";

export interface Result {
  readonly plan: Plan;
  readonly steps: readonly Step[];
  readonly violations: readonly Violation[];
  readonly timeline: readonly string[];
}

export interface RunOptions {
  /** Performed in place of drawn ones. */
  readonly steps?: readonly Step[];
  /** Whether every event is described. */
  readonly hasTimeline?: boolean;
  /** The name of the drill that it is about, whatever the seed says. */
  readonly drill?: string | undefined;
}

/** Every call settles within this time once nothing goes wrong any more: a lost lease lapses, the breaker probes. */
const REST_MS = 20_000;
/** A load that never ends blocks its key for a minute, and its lease for six seconds more. */
const LOAD_LIMIT_MS = 75_000;

/** Errors are part of every schedule; the stacks would be most of their cost. */
Error.stackTraceLimit = 0;

export async function runSchedule(plan: Plan, options: RunOptions = {}): Promise<Result> {
  const timeline: string[] | undefined = options.hasTimeline ? [] : undefined;
  const world = new World(plan.settings, timeline);
  if (plan.isConnected) await connectAll(world);
  const steps = options.steps ?? (await walk(world, plan));
  if (options.steps !== undefined) await repeat(world, options.steps);
  await finish(world);
  const violations = check(world.history);
  world.close();
  await settled();
  return { plan, steps, violations, timeline: timeline ?? [] };
}

export const runSeed = (seed: number, options: RunOptions = {}): Promise<Result> =>
  runSchedule(drawPlan(seed, options.drill), options);

/** Nothing goes wrong any more: everything is delivered, every call settles, and every process is asked what it sees. */
async function finish(world: World): Promise<void> {
  const { history } = world;
  world.heal();
  history.healed = world.moment;
  await deliverAll(world, false);
  await watchWaiters(world);
  const isHanging = (call: Call): boolean => world.calls.isBlockedByHang(call);
  const isOver = (): boolean => history.calls.every((call) => call.end !== undefined || isHanging(call));
  await pass(world, REST_MS, isOver);
  if (world.calls.loads.some(({ outcome }) => outcome === "hang")) await watchHanging(world);
  judgeRest(world);
  const isOwed = history.calls.some((call) => isChange(call.operation) && call.error !== undefined);
  // What is owed is delivered whether or not somebody reads it.
  const isUnread = isOwed && world.settings.seed % 2 === 0;
  if (isUnread) {
    await passAll(world, OWED_MS + 10);
    observe(world);
  }
  await finalReads(world);
  if (isOwed) await passAll(world, OWED_MS + 10);
  // Takes long, so not every schedule waits for it.
  if (isOwed && world.settings.seed % 8 === 0) await passAll(world, OWED_AT_LAST_MS);
  observe(world);
  history.end = world.moment;
}

/** The whole time passes, whatever happens. */
const passAll = (world: World, ms: number): Promise<void> => pass(world, ms, () => false);

/** Every process that is left reads everything; a breaker that is open has closed after a while. */
async function finalReads(world: World): Promise<void> {
  const asked = world.processes.filter(({ state, isDisconnected }) => state === "running" && !isDisconnected);
  const read = (): Call[] => asked.flatMap(({ index }) => world.readAll(index));
  const isOver = (calls: readonly Call[]) => () => calls.every(({ end }) => end !== undefined);
  let calls = read();
  await pass(world, 2_000, isOver(calls));
  if (calls.some(({ error }) => error !== undefined)) {
    await passAll(world, BREAKER_RESET_MS + 3_000);
    // The first of them is the breaker's probe.
    calls = read();
    await pass(world, 2_000, isOver(calls));
    calls = read();
    await pass(world, 2_000, isOver(calls));
  }
  for (const { id, process, error, end } of calls) {
    if (error === undefined && end !== undefined) continue;
    world.observe(6, "not recovered", `get ${id} in p${process} failed although the store works again`);
  }
}

/** What the store holds is judged as if a process without any memory of its own had read it. */
function observe(world: World): void {
  const { processes } = world;
  // After a restart or failover the store is only in order once a process has connected to it.
  if (processes.some(({ state, isDisconnected }) => state === "running" && !isDisconnected))
    world.readStore();
}

/** A process that waits for a load that stored nothing begins one of its own, even if another process is loading again. */
async function watchWaiters(world: World): Promise<void> {
  const { history } = world;
  if (history.faults.length > 0 || world.calls.loads.length === 0) return;
  if (!history.loads.some(hasStoredNothing)) return;
  const since = world.moment;
  await passWithoutEnds(world, 700);
  for (const call of history.calls) {
    const { operation } = call;
    if (operation.do !== "getOrSet" || call.end !== undefined) continue;
    const about = history.loads.filter(
      ({ key, namespace }) => key === operation.key && namespace === operation.namespace,
    );
    const failed = about.find((run) => isAwaited(history, about, run, call));
    if (failed === undefined) continue;
    const isLoading = about.some((run) => run.process === call.process && run.end === undefined);
    const blocking = about.find((run) => run.end === undefined && run.start.tick > (failed.end?.tick ?? 0));
    if (isLoading || blocking === undefined || blocking.start.tick > since.tick) continue;
    world.observe(
      1,
      "loads in turn",
      `${call.id} in p${call.process} waits for load ${blocking.id} of p${blocking.process} although ${failed.id}, which it waited for, stored nothing`,
    );
  }
}

const hasStoredNothing = ({ outcome }: LoadRun): boolean => outcome !== undefined && outcome !== "value";

/** Whether a call has seen the lease of a load of another process, which then ended and stored nothing. */
function isAwaited(
  { calls, sightings }: History,
  about: readonly LoadRun[],
  run: LoadRun,
  call: Call,
): boolean {
  const { end, lease, process } = run;
  if (!hasStoredNothing(run) || end === undefined || lease === undefined || process === call.process)
    return false;
  // A load that had to run without a lease leaves that of another one in place.
  if (about.find((each) => each.lease === lease) !== run) return false;
  // A change revokes the lease.
  const isRevoked = calls.some(
    (each) => isChange(each.operation) && (each.end === undefined || each.end.tick > call.start.tick),
  );
  if (isRevoked) return false;
  return sightings.some(
    (each) =>
      each.process === call.process &&
      each.lease === lease &&
      each.sequence > call.start.sequence &&
      each.at.tick < end.tick,
  );
}

async function passWithoutEnds(world: World, ms: number): Promise<void> {
  const until = world.time.elapsed + ms;
  for (;;) {
    await deliverAll(world, false);
    const left = until - world.time.elapsed;
    if (left <= 0 || world.time.nextDue - world.time.now > left || !world.time.tick()) return;
    await settled();
  }
}

async function watchHanging(world: World): Promise<void> {
  const waiting = world.history.calls.filter(
    (call) => call.end === undefined && !world.calls.isBlockedByHang(call, true),
  );
  if (waiting.length === 0) return;
  const isDone = (): boolean => waiting.every(({ end }) => end !== undefined);
  // Another caller of the process that hangs may get the lease next, and hang as long again.
  let loads: number;
  do {
    loads = world.history.loads.length;
    await pass(world, LOAD_LIMIT_MS, isDone);
  } while (!isDone() && world.history.loads.length > loads);
  for (const call of waiting) {
    // By now it may have begun a load of its own that never ends.
    if (call.end !== undefined || world.calls.isBlockedByHang(call, true)) continue;
    const message = `${call.id} in p${call.process} still waits for a load that never ends`;
    world.observe(1, "hanging load", message);
  }
}

/** What must be true when every call has settled. */
function judgeRest(world: World): void {
  const { history } = world;
  for (const call of history.calls) {
    if (call.end !== undefined || world.calls.isBlockedByHang(call)) continue;
    if (world.processes[call.process]?.state === "dead") continue;
    const message = `${call.operation.do} ${call.id} in p${call.process} has not ended`;
    world.observe(6, "overlong call", message);
  }
  for (const call of history.calls) {
    if ((call.error as { code?: string } | undefined)?.code !== "CIRCUIT_OPEN") continue;
    if (world.failuresOf(call.process) >= BREAKER_THRESHOLD) continue;
    const message = `the breaker of p${call.process} opened after ${world.failuresOf(call.process)} failures`;
    world.observe(6, "one loss, many failures", message);
    break;
  }
  if (history.faults.length === 0 && world.calls.loads.length === 0 && world.store.hasLease()) {
    const hasLeft = world.processes.some(({ isDisconnected }) => isDisconnected);
    world.observe(
      1,
      hasLeft ? "lease at disconnect" : "lease left",
      "a lease is in the store although no load runs",
    );
  }
  for (const process of world.processes) {
    if (!process.isDisconnected || process.state === "dead") continue;
    if (world.isConnected(process.index))
      world.observe(6, "reopened", `p${process.index} has a connection after disconnect()`);
    // A load that never ends has a limit.
    const isLoading = world.calls.loads.some(({ run }) => run.process === process.index);
    const timers = world.time.timersOf(process.clock);
    if (timers > 0 && !isLoading)
      world.observe(6, "timers left", `p${process.index} has ${timers} timers after disconnect()`);
  }
}
