// One simulated world: processes, a store, a network and a clock, and what each step of a schedule does to them.
import { Calls } from "./calls.ts";
import type { Violation } from "./checker.ts";
import type { Check } from "./checks.ts";
import { type Call, History, type Moment } from "./history.ts";
import { isDeliverable, isServable, type Link, type Network } from "./network.ts";
import { describeOperation, type Operation, type OperationSettings } from "./operations.ts";
import { type ProcessSettings, SimulatedProcess } from "./process.ts";
import { useNetwork } from "./socket.ts";
import { type ConnectionFault, describeStep, isFault, type Step } from "./steps.ts";
import { Store } from "./store.ts";
import { ProcessClock, SimulatedTime } from "./time.ts";

export interface WorldSettings extends OperationSettings, ProcessSettings {
  readonly seed: number;
  readonly processes: number;
  readonly hasReplica: boolean;
}

export class World {
  readonly settings: WorldSettings;
  readonly time = new SimulatedTime();
  readonly history = new History();
  readonly store: Store;
  readonly network: Network;
  readonly processes: SimulatedProcess[] = [];
  readonly calls: Calls;
  /** What happened, one line per event; undefined: not wanted. */
  readonly timeline: string[] | undefined;
  #tick = 0;
  readonly #frozenAt = new Map<number, number>();

  constructor(settings: WorldSettings, timeline?: string[]) {
    this.settings = settings;
    this.timeline = timeline;
    const { hasReplica, lateTags } = settings;
    this.store = new Store({ hasReplica, isWarm: lateTags }, this.time);
    this.network = this.store.network;
    this.calls = new Calls(this);
    this.network.sawLease = (process, lease, sequence) =>
      void this.history.sightings.push({ process, lease, sequence, at: this.moment });
    this.network.wroteLease = (process, spelled) =>
      void this.history.leaseWrites.push({ process, spelled, at: this.moment });
    this.network.failed = (process) => this.calls.failed(process);
    useNetwork(this.network);
    for (let index = 0; index < settings.processes; index++) this.start();
  }

  /** Starts one more process. */
  start(): SimulatedProcess {
    const index = this.processes.length;
    const { settings } = this;
    const skewMs = (index % 2) * 137;
    const clock = new ProcessClock(this.time, settings.seed * 16 + index, skewMs);
    const process: SimulatedProcess = new SimulatedProcess(index, clock, settings, (error) =>
      this.calls.troubled(process, error),
    );
    this.processes.push(process);
    return process;
  }

  get moment(): Moment {
    return { tick: ++this.#tick, time: this.time.elapsed, sequence: this.network.sequence };
  }

  /** Performs a step and returns whether it was possible. Let everything settle before the next one. */
  apply(step: Step): boolean {
    if (this.timeline === undefined) return this.#apply(step);
    const at = this.timeline.length;
    const isDone = this.#apply(step);
    if (isDone) this.timeline.splice(at, 0, this.#line(describeStep(step, describeOperation)));
    return isDone;
  }

  #apply(step: Step): boolean {
    const isDone = this.#perform(step);
    if (isDone && isFault(step)) {
      this.history.faults.push({
        at: this.moment,
        what: step.do,
        ...("process" in step ? { process: step.process } : {}),
        ...(step.do === "failover" || step.do === "demote" ? { loses: true } : {}),
      });
    }
    return isDone;
  }

  #perform(step: Step): boolean {
    switch (step.do) {
      case "call":
        return this.#call(step.process, step.operation, step.callers);
      case "connect":
        return this.#connect(step.process);
      case "serve": {
        const link = this.servable(step.process)[step.rank];
        link?.serve(step.count);
        return link !== undefined;
      }
      case "deliver": {
        const link = this.deliverable(step.process)[step.rank];
        link?.deliver(step.count);
        return link !== undefined;
      }
      case "load": {
        const load = this.calls.endable()[step.rank];
        load?.end();
        return load !== undefined;
      }
      case "tick":
        return this.time.tick();
      case "wait":
        this.time.pass(step.ms);
        return true;
      case "hold":
      case "release":
        return this.#hold(this.#linksOf(step), step.do === "hold");
      case "reset":
        return this.#reset(step.process, this.#linksOf(step), step.arrives);
      case "freeze":
      case "thaw":
      case "kill":
        return this.#disturb(step.process, step.do);
      case "evict":
        return this.#evict(step.rank);
      case "step clock":
        this.store.skewMs += step.ms;
        return true;
      case "save":
        this.store.save();
        return true;
      case "restart":
        return this.store.restart();
      case "down":
      case "up":
        return this.store.switch(step.do === "down");
      case "replicate":
        return this.store.replicate(step.count);
      case "promote":
        return this.store.promote();
      case "failover":
      case "demote":
        return this.store.failover(step.do === "demote");
    }
  }

  /** Connections of a process with commands that can reach the store now. */
  servable(process: number): Link[] {
    return this.network.servable(process);
  }

  /** Connections of a process on which something can reach it now. */
  deliverable(process: number): Link[] {
    return this.processes[process]?.state === "running" ? this.network.deliverable(process) : [];
  }

  isConnecting(process: number): boolean {
    const { attempts } = this.network;
    if (attempts.length === 0 || this.processes[process]?.state !== "running") return false;
    return attempts.some((attempt) => attempt.process === process);
  }

  isServable(process: number): boolean {
    for (const link of this.network.links) if (isServable(link, process)) return true;
    return false;
  }

  isDeliverable(process: number): boolean {
    if (this.processes[process]?.state !== "running") return false;
    for (const link of this.network.links) if (isDeliverable(link, process)) return true;
    return false;
  }

  attempts(process: number) {
    if (this.processes[process]?.state !== "running") return [];
    return this.network.attempts.filter((attempt) => attempt.process === process);
  }

  /** Nothing is in the way any more. What was sent on connections that no longer exist never arrives. */
  heal(): void {
    for (const process of this.processes) this.apply({ do: "thaw", process: process.index });
    for (const link of [...this.network.links]) {
      link.isHeld = false;
      if (!link.isClientOpen) link.discard();
    }
    this.apply({ do: "up" });
    if (this.store.hasTwoMasters) this.apply({ do: "failover" });
  }

  /** Ends what would run on after the schedule. */
  close(): void {
    for (const process of this.processes) {
      process.clock.isStopped = true;
      this.time.forget(process.clock);
    }
  }

  readAll(process: number): Call[] {
    const { keys, namespaces } = this.settings;
    return namespaces.flatMap((namespace) =>
      keys.map((key) => this.calls.begin(process, { do: "get", key, namespace })),
    );
  }

  observe(guarantee: Violation["guarantee"], check: Check, message: string): void {
    this.history.observed.push({ guarantee, check, message });
  }

  /** Connections lost, attempts that failed and calls that timed out. */
  failuresOf(process: number): number {
    return (this.network.losses[process] ?? 0) + (this.processes[process]?.timeouts ?? 0);
  }

  isConnected(process: number): boolean {
    return this.network.linksOf(process).length > 0 || this.attempts(process).length > 0;
  }

  /** Records what is live in the store as reads by an observer. */
  readStore(): void {
    const { keys, namespaces } = this.settings;
    for (const namespace of namespaces) {
      for (const key of keys) {
        const value = this.store.liveValue(namespace, key);
        if (value === undefined) continue;
        const start = this.moment;
        this.note(() => `the store holds ${value} for ${key}`);
        this.history.calls.push({
          id: "observed",
          process: -1,
          operation: { do: "get", key, namespace },
          start,
          heard: Number.POSITIVE_INFINITY,
          isReachable: true,
          isUp: true,
          frozenMs: 0,
          end: this.moment,
          value,
          error: undefined,
        });
      }
    }
  }

  note(line: () => string): void {
    this.timeline?.push(this.#line(line()));
  }

  #line(line: string): string {
    return `${this.time.elapsed.toFixed(0).padStart(7)} ms  ${line}`;
  }

  #call(index: number, operation: Operation, callers: number): boolean {
    const process = this.processes[index];
    if (process === undefined || process.state !== "running") return false;
    for (let caller = 0; caller < callers; caller++) {
      const call = this.calls.begin(index, operation);
      this.note(() => `  ${call.id} begins`);
    }
    if (operation.do === "disconnect") process.isDisconnected = true;
    return true;
  }

  #connect(process: number): boolean {
    const [attempt] = this.attempts(process);
    if (attempt === undefined) return false;
    this.network.connect(attempt);
    for (const link of this.network.linksOf(process)) link.since = Math.min(link.since, this.#tick);
    return true;
  }

  /** The connections of a process that a fault is about. */
  #linksOf({ process, connection }: ConnectionFault): Link[] {
    const links = this.network.linksOf(process);
    return connection === undefined ? links : links.slice(connection, connection + 1);
  }

  #hold(links: readonly Link[], isHeld: boolean): boolean {
    const others = links.filter((link) => link.isHeld !== isHeld);
    for (const link of others) link.isHeld = isHeld;
    return others.length > 0;
  }

  #reset(process: number, links: readonly Link[], arrives: boolean): boolean {
    if (this.processes[process]?.state !== "running") return false;
    for (const link of links) link.reset(arrives);
    return links.length > 0;
  }

  #disturb(index: number, how: "freeze" | "thaw" | "kill"): boolean {
    const process = this.processes[index];
    if (process === undefined) return false;
    if (how === "thaw") {
      if (process.state !== "frozen") return false;
      const ms = this.time.elapsed - (this.#frozenAt.get(index) ?? 0);
      for (const call of this.history.calls)
        if (call.process === index && call.end === undefined) call.frozenMs += ms;
      process.state = "running";
      process.clock.isStopped = false;
      return true;
    }
    if (process.state !== "running") return false;
    if (how === "freeze") {
      process.state = "frozen";
      process.clock.isStopped = true;
      this.#frozenAt.set(index, this.time.elapsed);
      return true;
    }
    // The last one is needed to see what became of the store.
    if (this.processes.filter(({ state }) => state !== "dead").length < 2) return false;
    process.state = "dead";
    for (const call of this.history.calls)
      if (call.process === index && call.end === undefined) call.frozenMs = Number.POSITIVE_INFINITY;
    this.network.died(index);
    this.time.forget(process.clock);
    return true;
  }

  #evict(rank: number): boolean {
    const key = this.store.evict(rank);
    if (key !== undefined) this.note(() => `  it is ${JSON.stringify(key)}`);
    return key !== undefined;
  }
}
