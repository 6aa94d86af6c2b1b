// The calls of the simulated processes and the loads they run, from their beginning to their end.
import type { LoadContext } from "../../src/core/options.ts";
import type { Call, History, LoadRun, Moment } from "./history.ts";
import type { Link, Network } from "./network.ts";
import type { Operation } from "./operations.ts";
import type { ProcessSettings, SimulatedProcess } from "./process.ts";
import type { Store } from "./store.ts";

/** The world around the calls. */
export interface CallHost {
  readonly settings: ProcessSettings;
  readonly history: History;
  readonly moment: Moment;
  readonly processes: readonly SimulatedProcess[];
  readonly network: Network;
  readonly store: Store;
  /** Adds a line to the timeline, if one is kept. */
  note(line: () => string): void;
}

/** A load that waits for its end. */
interface RunningLoad {
  readonly run: LoadRun;
  readonly outcome: string;
  end(): void;
}

export class LoadError extends Error {}

export class Calls {
  readonly loads: RunningLoad[] = [];
  readonly #host: CallHost;
  /** When the store last failed each process. */
  readonly #failedAt = new Map<number, number>();
  /** How many calls and loads each process has begun. */
  readonly #begun: number[] = [];

  constructor(host: CallHost) {
    this.#host = host;
  }

  /** The store has failed a process. */
  failed(process: number): void {
    this.#failedAt.set(process, this.#host.moment.tick);
  }

  /** The store failed a process that went on without it. */
  troubled(process: SimulatedProcess, error: Error): void {
    const { history } = this.#host;
    const { code } = error as { code?: string };
    if (error instanceof LoadError || code === "DISCONNECTED") return;
    if (code === "OPERATION_TIMEOUT") process.timeouts++;
    if (code !== "CIRCUIT_OPEN") this.failed(process.index);
    history.faults.push({
      at: this.#host.moment,
      what: `error in p${process.index}`,
      process: process.index,
    });
    this.#host.note(() => `  p${process.index} reports ${describeError(error)}`);
  }

  begin(index: number, operation: Operation): Call {
    const { history, network, processes, settings } = this.#host;
    const { poolSize } = settings;
    const process = processes[index] as SimulatedProcess;
    const links = network.linksOf(index);
    const failedAt = this.#failedAt.get(index) ?? Number.NEGATIVE_INFINITY;
    const areEnough = ({ length }: readonly Link[]): boolean => length >= poolSize;
    const call: Call = {
      id: this.#nextId(operation.do === "set" ? "S" : "C", index),
      process: index,
      operation,
      start: this.#host.moment,
      heard: network.heardBy(index),
      isReachable: areEnough(links.filter((link) => link.isServerOpen && !link.isHeld)),
      // Connections are ready that were opened after the store's last failure.
      isUp: areEnough(links.filter((link) => link.isIdle && link.since > failedAt)),
      frozenMs: 0,
      end: undefined,
      value: undefined,
      error: undefined,
    };
    history.calls.push(call);
    this.#run(process, call).then(
      (value) => {
        call.value = typeof value === "string" ? value : undefined;
        this.#ended(call);
      },
      (error: Error) => {
        call.error = error;
        this.#ended(call);
      },
    );
    return call;
  }

  /** Whether a call waits for a load that never ends. `own`: only if that load is in the same process. */
  isBlockedByHang({ operation, process }: Call, own = false): boolean {
    if (this.#host.processes[process]?.state === "dead") return true;
    if (operation.do !== "getOrSet") return false;
    return this.loads.some(
      ({ run, outcome }) =>
        outcome === "hang" &&
        run.key === operation.key &&
        run.namespace === operation.namespace &&
        (!own || run.process === process),
    );
  }

  /** Loads that can end now. */
  endable(): RunningLoad[] {
    return this.loads.filter(
      ({ run, outcome }) => outcome !== "hang" && this.#host.processes[run.process]?.state === "running",
    );
  }

  /** What a process does must not show in the values of another: each counts for itself. */
  #nextId(kind: "C" | "S" | "L", process: number): string {
    const count = (this.#begun[process] ?? 0) + 1;
    this.#begun[process] = count;
    return `${kind}${process}.${count}`;
  }

  #ended(call: Call): void {
    call.end = this.#host.moment;
    if (call.error !== undefined && !(call.error instanceof LoadError)) {
      const { code } = call.error as { code?: string };
      if (code !== "LOAD_TIMEOUT")
        this.troubled(this.#host.processes[call.process] as SimulatedProcess, call.error);
    }
    this.#host.note(() => describeEnd(call));
  }

  async #run(process: SimulatedProcess, call: Call): Promise<unknown> {
    const { operation } = call;
    if (operation.do === "disconnect") return process.cache.disconnect();
    const cache = process.in(operation.namespace);
    switch (operation.do) {
      case "get":
        return cache.get(operation.key);
      case "getOrSet": {
        const { key, tags, lateTags, outcome, do: _do, namespace: _namespace, ...options } = operation;
        // A load that declares no parameter names no tags, but gets the context all the same.
        const load =
          lateTags.length > 0
            ? (context: LoadContext<unknown>) => this.#load(process, call, context)
            : (...args: LoadContext<unknown>[]) => this.#load(process, call, args[0] as LoadContext<unknown>);
        return cache.getOrSet(key, load as () => Promise<unknown>, { tags, ...options });
      }
      case "set":
        return cache.set(operation.key, call.id, {
          tags: operation.tags,
          ...(operation.ttl === undefined ? {} : { ttl: operation.ttl }),
        });
      case "delete":
        await cache.delete(operation.key);
        return undefined;
      case "invalidateTags":
        return cache.invalidateTags(operation.tags);
      case "invalidatePattern":
        await cache.invalidatePattern(operation.pattern);
        return undefined;
      case "clear":
        return cache.clear();
    }
  }

  #load(process: SimulatedProcess, call: Call, context: LoadContext<unknown>): Promise<unknown> {
    const { operation } = call;
    if (operation.do !== "getOrSet") throw new Error("not a load");
    const { key, namespace, lateTags, outcome } = operation;
    const run: LoadRun = {
      id: this.#nextId("L", process.index),
      process: process.index,
      call,
      key,
      namespace,
      tags: [...operation.tags, ...lateTags],
      start: this.#host.moment,
      heard: this.#host.network.heardBy(process.index),
      lease: this.#host.store.leaseOf(namespace, key),
      stale: context.stale as string | undefined,
      end: undefined,
      outcome: undefined,
      error: undefined,
    };
    this.#host.history.loads.push(run);
    this.#host.note(() => {
      const stale = run.stale === undefined ? "" : `, with ${run.stale} as the stale value`;
      return `  load ${run.id} of ${key} begins in p${process.index} for ${call.id}${stale}`;
    });
    return new Promise((resolve, reject) => {
      const running: RunningLoad = {
        run,
        outcome,
        end: () => {
          this.loads.splice(this.loads.indexOf(running), 1);
          run.end = this.#host.moment;
          if (outcome === "hang") return;
          run.outcome = outcome;
          this.#host.note(() => `  load ${run.id} ends: ${outcome}`);
          if (lateTags.length > 0) context.setTags(lateTags);
          if (outcome === "skip") context.skip();
          if (outcome === "error") {
            run.error = new LoadError(run.id);
            reject(run.error);
          } else resolve(outcome === "undefined" ? undefined : run.id);
        },
      };
      this.loads.push(running);
    });
  }
}

function describeEnd({ id, process, operation, start, end = start, value = "nothing", error }: Call): string {
  const took = Math.round(end.time - start.time);
  const result = error === undefined ? value : describeError(error);
  return `  ${id} of p${process} (${operation.do}) ended after ${took} ms: ${result}`;
}

const describeError = (error: Error): string => {
  const { code } = error as { code?: unknown };
  return error instanceof LoadError ? `the error of ${error.message}` : `${String(code)} (${error.message})`;
};
