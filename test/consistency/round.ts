// One run: real processes execute a plan on a real store while faults are injected; then its history is checked.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { CacheConfig } from "../../src/config/types.ts";
import { EXEC_ARGV } from "../support/own-process.ts";
import { recordServer } from "../support/run-folder.ts";
import { type Counts, check, count } from "./checker.ts";
import { OPERATION_TIMEOUT_MS, RESUME_MS, type Violation } from "./evidence.ts";
import { mayLose, openStage, type Stage } from "./faults.ts";
import { type FaultRun, type History, type HistoryRecord, historyOf, slice } from "./history.ts";
import { type FaultStep, LAST_MS, planOf, type Setting, type Step, WORKERS } from "./plan.ts";

/** The messages to a worker. */
export type Order =
  | {
      readonly do: "prepare";
      readonly worker: number;
      /** The path of the library. */
      readonly library: string;
      readonly config: CacheConfig;
      readonly steps: readonly Step[];
    }
  /** The moment from which its clock counts, in nanoseconds. */
  | { readonly do: "go"; readonly origin: string }
  | { readonly do: "calm" }
  /** Every worker is done: report the rest, such as a load without a waiter here that has one in another process. */
  | { readonly do: "report" }
  | { readonly do: "end" };

const WORKER = join(import.meta.dirname, "worker.mjs");
const LIBRARY = pathToFileURL(join(import.meta.dirname, "../../dist/index.js")).href;
/** How much longer than planned a run may take before it is aborted. */
const PATIENCE_MS = 60_000;

export interface Outcome {
  readonly setting: Setting;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly counts: Counts;
}

export async function runRound(setting: Setting): Promise<Outcome> {
  const stage = await openStage(setting.store);
  try {
    await stage.settle();
    const history = await record(setting, stage);
    return { setting, history, violations: check(history), counts: count(history) };
  } finally {
    await stage.stop();
  }
}

/** The violations, each with the part of the history that shows it and how to run it again. */
export function report({ setting, history, violations }: Outcome): string {
  const { seed, seconds, store, near } = setting;
  const lines = violations.slice(0, 5).map(({ guarantee, message, key, from, to }) => {
    return `Guarantee ${guarantee}: ${message}\n${slice(history, key, from, to)}\n`;
  });
  const replay = `npm run soak -- --seed ${seed} --minutes ${seconds / 60} --store ${store} --near ${near ? "on" : "off"}`;
  return `${violations.length} violations, seed ${seed}. Again: ${replay}\n\n${lines.join("\n")}`;
}

async function record(setting: Setting, stage: Stage): Promise<History> {
  const { workers, faults } = planOf(setting);
  const team = workers.map((steps, worker) => new WorkerProcess(worker, steps, setting, stage.url));
  const failed = Promise.race(team.map(({ failure }) => failure));
  const late = new AbortController();
  const tooLate = pause(setting.seconds * 1_000 + PATIENCE_MS, undefined, { signal: late.signal }).then(
    () => {
      throw new Error(`The run with seed ${setting.seed} did not end in time.`);
    },
  );
  tooLate.catch(() => {});
  const inTime = <T>(work: Promise<T>): Promise<T> => Promise.race([work, failed, tooLate]);
  try {
    await inTime(Promise.all(team.map(({ ready }) => ready)));
    const origin = process.hrtime.bigint();
    const now = (): number => Number(process.hrtime.bigint() - origin) / 1e6;
    for (const member of team) member.tell({ do: "go", origin: String(origin) });
    const runs = await inTime(injectAll(stage, setting, faults, now));
    const healed = runs.at(-1)?.healed ?? 0;
    await pause(Math.max(setting.seconds * 1_000, healed + RESUME_MS + OPERATION_TIMEOUT_MS) - now());
    for (const member of team) member.tell({ do: "calm" });
    await inTime(Promise.all(team.map(({ done }) => done)));
    for (const member of team) member.tell({ do: "report" });
    await inTime(Promise.all(team.map(({ reported }) => reported)));
    return historyOf(WORKERS, [...team.flatMap(({ records }) => records), ...runs]);
  } finally {
    late.abort();
    await Promise.all(team.map((member) => member.end()));
  }
}

async function injectAll(
  stage: Stage,
  { store, seconds }: Setting,
  faults: readonly FaultStep[],
  now: () => number,
): Promise<FaultRun[]> {
  const runs: FaultRun[] = [];
  for (const fault of faults) {
    await stage.settle();
    await pause(Math.max(0, fault.at - now()));
    // Earlier ones may have taken longer than planned.
    if (now() > seconds * 1_000 - LAST_MS) break;
    const start = now();
    await stage.inject(fault);
    runs.push({
      kind: "fault",
      what: fault.what,
      start,
      healed: now(),
      mayLose: mayLose(store, fault.what),
    });
  }
  return runs;
}

interface Message {
  readonly ready?: true;
  readonly done?: true;
  readonly reported?: true;
  readonly records?: readonly HistoryRecord[];
}

/** A worker, from its start to its end; it never outlives its parent. */
class WorkerProcess {
  readonly records: HistoryRecord[] = [];
  readonly ready: Promise<void>;
  readonly done: Promise<void>;
  /** Resolves when everything that happened is in `records`. */
  readonly reported: Promise<void>;
  /** Rejects when the process ends before it was asked to. */
  readonly failure: Promise<never>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<readonly unknown[]>;
  #isEnding = false;

  constructor(worker: number, steps: readonly Step[], { seed, near }: Setting, kvUrl: string) {
    this.#child = fork(WORKER, { stdio: ["ignore", "inherit", "inherit", "ipc"], execArgv: EXEC_ARGV });
    this.#exited = once(this.#child, "exit");
    this.failure = this.#exited.then(([code, signal]) => {
      if (this.#isEnding) return new Promise<never>(() => {});
      throw new Error(`Process ${worker} ended early: ${signal ?? code}.`);
    });
    this.failure.catch(() => {});
    const strikeOff = this.#child.pid === undefined ? () => {} : recordServer(this.#child.pid);
    this.#exited.then(strikeOff, () => {});
    const heard = (what: "ready" | "done" | "reported"): Promise<void> =>
      new Promise((resolve) => {
        this.#child.on("message", (message: Message) => {
          if (message[what]) resolve();
        });
      });
    this.ready = heard("ready");
    this.done = heard("done");
    this.reported = heard("reported");
    this.#child.on("message", ({ records }: Message) => this.records.push(...(records ?? [])));
    const config = {
      kvUrl,
      keyPrefix: `run${seed}`,
      operationTimeout: OPERATION_TIMEOUT_MS / 1_000,
      connectTimeout: 5,
      circuitBreaker: { failureThreshold: 5, resetTimeout: 0.3 },
      nearCache: near,
    };
    this.tell({ do: "prepare", worker, library: LIBRARY, config, steps });
  }

  tell(order: Order): void {
    this.#child.send(order);
  }

  /** Kills it by its id if it does not exit by itself. */
  async end(): Promise<void> {
    this.#isEnding = true;
    if (this.#child.connected) this.#child.send({ do: "end" });
    const impatience = setTimeout(() => this.#child.kill("SIGKILL"), 3_000);
    await this.#exited;
    clearTimeout(impatience);
  }
}
