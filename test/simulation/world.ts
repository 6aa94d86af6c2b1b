// One simulated world: processes, a store, a network and a clock, and what each step of a schedule does to them.
import { createCodec } from "../../src/codec/codec.ts";
import { decodeRecord, encodeRecord } from "../../src/core/frame/frame.ts";
import { spelling, TAG_GROUPS } from "../../src/core/keys.ts";
import type { LoadContext } from "../../src/core/options.ts";
import type { StoreRecord } from "../../src/core/record.ts";
import type { Violation } from "./checker.ts";
import type { Check } from "./checks.ts";
import { type Call, History, type LoadRun, type Moment } from "./history.ts";
import { Network } from "./network.ts";
import { describeOperation, type Operation, type OperationSettings } from "./operations.ts";
import { SimulatedProcess } from "./process.ts";
import { type Kept, LEASE, type Records, Server, versionOf } from "./server.ts";
import { useNetwork } from "./socket.ts";
import { describeStep, isFault, type Step } from "./steps.ts";
import { ProcessClock, SimulatedTime } from "./time.ts";

export interface WorldSettings extends OperationSettings {
  readonly seed: number;
  readonly processes: number;
  readonly near: boolean;
  readonly hasReplica: boolean;
}

/** A load that waits for its end. */
interface RunningLoad {
  readonly run: LoadRun;
  readonly outcome: string;
  end(): void;
}

export class LoadError extends Error {}

const ROOT = spelling("x");
const codec = createCodec({ serialization: "msgpack", compression: false });

export class World {
  readonly settings: WorldSettings;
  readonly time = new SimulatedTime();
  readonly history = new History();
  readonly network: Network;
  readonly processes: SimulatedProcess[] = [];
  readonly loads: RunningLoad[] = [];
  /** What happened, one line per event; undefined: not wanted. */
  readonly timeline: string[] | undefined;
  readonly #servers: Server[];
  /** Writes that the replica has not applied. */
  #replication: { readonly key: string; readonly kept: Kept | undefined }[] = [];
  #saved: Records | undefined;
  #serverSkewMs = 0;
  #tick = 0;
  #ids = 0;
  readonly #frozenAt = new Map<number, number>();
  /** When the store last failed each process. */
  readonly #failedAt = new Map<number, number>();

  constructor(settings: WorldSettings, timeline?: string[]) {
    this.settings = settings;
    this.timeline = timeline;
    const host = {
      now: () => this.time.now + this.#serverSkewMs,
      executed: () => {
        this.network.sequence++;
      },
      changed: (server: Server, key: string) => {
        if (settings.hasReplica && server === this.network.master)
          this.#replication.push({ key, kept: server.records.get(key) });
      },
    };
    const master = new Server("A", host, this.#identity());
    // Servers have usually been running for a while.
    master.startedAt -= 3_600_000;
    master.records = settings.lateTags ? new Map(warmed(this.time.now)) : new Map();
    this.#servers = [master];
    this.network = new Network(master);
    if (settings.hasReplica) {
      const replica = new Server("B", host, this.#identity());
      replica.startedAt -= 3_600_000;
      replica.resync(master);
      this.#servers.push(replica);
    }
    this.network.sawLease = (process, lease, sequence) =>
      void this.history.sightings.push({ process, lease, sequence, at: this.moment });
    this.network.failed = (process) => void this.#failedAt.set(process, this.moment.tick);
    useNetwork(this.network);
    for (let index = 0; index < settings.processes; index++) this.start();
  }

  /** Starts one more process. */
  start(): SimulatedProcess {
    const index = this.processes.length;
    const { seed, near } = this.settings;
    const skewMs = (index % 2) * 137;
    const clock = new ProcessClock(this.time, seed * 16 + index, skewMs);
    const process: SimulatedProcess = new SimulatedProcess(index, clock, near, (error) =>
      this.#troubled(process, error),
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
        const load = this.endable()[step.rank];
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
        return this.#hold(step.process, step.do === "hold");
      case "reset":
        return this.#reset(step.process, step.arrives);
      case "freeze":
      case "thaw":
      case "kill":
        return this.#disturb(step.process, step.do);
      case "evict":
        return this.#evict(step.rank);
      case "step clock":
        this.#serverSkewMs += step.ms;
        return true;
      case "save":
        this.#saved = new Map(this.network.master.records);
        return true;
      case "restart":
        return this.#restart();
      case "down":
      case "up":
        return this.#switch(step.do === "down");
      case "replicate":
        return this.#replicate(step.count);
      case "promote":
        return this.#promote();
      case "failover":
      case "demote":
        return this.#failover(step.do === "demote");
    }
  }

  /** Connections of a process with commands that can reach the store now. */
  servable(process: number) {
    return [...this.network.links].filter(
      (link) => link.process === process && link.toServer.length > 0 && !(link.isHeld && link.isClientOpen),
    );
  }

  /** Connections of a process on which something can reach it now. */
  deliverable(process: number) {
    if (this.processes[process]?.state !== "running") return [];
    return [...this.network.links].filter(
      (link) => link.process === process && link.toClient.length > 0 && !link.isHeld,
    );
  }

  /** Loads that can end now. */
  endable(): RunningLoad[] {
    return this.loads.filter(
      ({ run, outcome }) => outcome !== "hang" && this.processes[run.process]?.state === "running",
    );
  }

  attempts(process: number) {
    if (this.processes[process]?.state !== "running") return [];
    return this.network.attempts.filter((attempt) => attempt.process === process);
  }

  /** What a process has certainly heard of: everything up to this sequence number. */
  heardBy(process: number): number {
    let heard = Number.POSITIVE_INFINITY;
    for (const link of this.network.links) {
      if (link.process !== process || !link.isClientOpen) continue;
      // What the master has executed since need not have reached it.
      if (link.server.isReplica) return Number.NEGATIVE_INFINITY;
      const [next] = link.toClient;
      if (next !== undefined) heard = Math.min(heard, next.sequence - 1);
    }
    return heard;
  }

  /** Nothing is in the way any more. What was sent on connections that no longer exist never arrives. */
  heal(): void {
    for (const process of this.processes) this.apply({ do: "thaw", process: process.index });
    for (const link of [...this.network.links]) {
      link.isHeld = false;
      if (!link.isClientOpen) link.discard();
    }
    this.apply({ do: "up" });
    if (this.hasTwoMasters) this.apply({ do: "failover" });
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
      keys.map((key) => this.call(process, { do: "get", key, namespace })),
    );
  }

  observe(guarantee: Violation["guarantee"], check: Check, message: string): void {
    this.history.observed.push({ guarantee, check, message });
  }

  /** Whether a call waits for a load that never ends. `own`: only if that load is in the same process. */
  isBlockedByHang(call: Call, own = false): boolean {
    const { operation } = call;
    if (this.processes[call.process]?.state === "dead") return true;
    if (operation.do !== "getOrSet") return false;
    return this.loads.some(
      ({ run, outcome }) =>
        outcome === "hang" &&
        run.key === operation.key &&
        run.namespace === operation.namespace &&
        (!own || run.process === call.process),
    );
  }

  /** Connections lost, attempts that failed and calls that timed out. */
  failuresOf(process: number): number {
    return (this.network.losses[process] ?? 0) + (this.processes[process]?.timeouts ?? 0);
  }

  isConnected(process: number): boolean {
    return this.#linksOf(process).length > 0 || this.attempts(process).length > 0;
  }

  /** Whether the store holds a lease that has not lapsed. */
  hasLease(): boolean {
    for (const [key, { frame }] of this.network.master.records) {
      const record = frame[0] === LEASE ? this.#record(key) : undefined;
      if (record?.kind === "lease" && record.expires > this.time.now + this.#serverSkewMs) return true;
    }
    return false;
  }

  /** Records what is live in the store as reads by an observer. */
  readStore(): void {
    const { keys, namespaces } = this.settings;
    for (const namespace of namespaces) {
      for (const key of keys) {
        const value = this.#liveValue(namespace, key);
        if (value === undefined) continue;
        const start = this.moment;
        this.note(`the store holds ${value} for ${key}`);
        const operation: Operation = { do: "get", key, namespace };
        const heard = Number.POSITIVE_INFINITY;
        const end = this.moment;
        const observer = {
          id: "observed",
          process: -1,
          operation,
          heard,
          isReachable: true,
          isUp: true,
          frozenMs: 0,
        };
        this.history.calls.push({ ...observer, start, end, value });
      }
    }
  }

  #leaseOf(namespace: string, key: string): string | undefined {
    const names = namespace === "" ? ROOT : ROOT.child(namespace);
    const frame = this.network.master.records.get(names.entry(key))?.frame;
    return frame?.[0] === LEASE ? versionOf(frame) : undefined;
  }

  #liveValue(namespace: string, key: string): string | undefined {
    const root = ROOT;
    const path = namespace === "" ? [root] : [root, root.child(namespace)];
    const names = path.at(-1) as typeof root;
    const record = this.#record(names.entry(key));
    const entry = record?.kind === "lease" ? record.behind : record;
    if (entry?.kind !== "entry" || entry.expires <= this.time.now + this.#serverSkewMs) return undefined;
    const isCurrent = (spelled: string, id: string | undefined): boolean =>
      id !== undefined && this.#record(spelled)?.version === id;
    const isLive =
      path.every((each, at) => isCurrent(each.namespaceStamp(), entry.namespaceStamps[at])) &&
      entry.tags.every(({ tag, id }) => isCurrent(names.tagStamp(tag), id));
    return isLive ? (codec.decode(entry.payload) as string) : undefined;
  }

  #record(key: string): StoreRecord | undefined {
    const kept = this.network.master.records.get(key);
    return kept === undefined || kept.expires <= this.time.now + this.#serverSkewMs
      ? undefined
      : decodeRecord(kept.frame, key);
  }

  /** Calls an operation of a process, outside of a schedule's steps. */
  call(index: number, operation: Operation): Call {
    const process = this.processes[index] as SimulatedProcess;
    const call: Call = {
      id: `${operation.do === "set" ? "S" : "C"}${++this.#ids}`,
      process: index,
      operation,
      start: this.moment,
      heard: this.heardBy(index),
      isReachable: this.#linksOf(index).some((link) => link.isServerOpen && !link.isHeld),
      isUp: this.#isUp(index),
      frozenMs: 0,
    };
    this.history.calls.push(call);
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

  /** Whether a connection is ready that was opened after the store's last failure. */
  #isUp(process: number): boolean {
    const failedAt = this.#failedAt.get(process) ?? 0;
    return this.#linksOf(process).some((link) => link.isIdle && link.since > failedAt);
  }

  /** The store failed a process that went on without it. */
  #troubled(process: SimulatedProcess, error: Error): void {
    const { code } = error as { code?: string };
    if (error instanceof LoadError || code === "DISCONNECTED") return;
    if (code === "OPERATION_TIMEOUT") process.timeouts++;
    if (code !== "CIRCUIT_OPEN") this.#failedAt.set(process.index, this.moment.tick);
    this.history.faults.push({ at: this.moment, what: `error in p${process.index}`, process: process.index });
    this.note(`  p${process.index} reports ${describeError(error)}`);
  }

  #ended(call: Call): void {
    call.end = this.moment;
    if (call.error !== undefined && !(call.error instanceof LoadError)) {
      const { code } = call.error as { code?: string };
      if (code !== "LOAD_TIMEOUT")
        this.#troubled(this.processes[call.process] as SimulatedProcess, call.error);
    }
    const took = Math.round(call.end.time - call.start.time);
    const result = call.error === undefined ? (call.value ?? "nothing") : describeError(call.error);
    this.note(`  ${call.id} of p${call.process} (${call.operation.do}) ended after ${took} ms: ${result}`);
  }

  note(line: string): void {
    this.timeline?.push(this.#line(line));
  }

  #line(line: string): string {
    return `${this.time.elapsed.toFixed(0).padStart(7)} ms  ${line}`;
  }

  #call(index: number, operation: Operation, callers: number): boolean {
    const process = this.processes[index];
    if (process === undefined || process.state !== "running") return false;
    for (let caller = 0; caller < callers; caller++) {
      const call = this.call(index, operation);
      this.note(`  ${call.id} begins`);
    }
    if (operation.do === "disconnect") process.isDisconnected = true;
    return true;
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
      id: `L${++this.#ids}`,
      process: process.index,
      call,
      key,
      namespace,
      tags: [...operation.tags, ...lateTags],
      start: this.moment,
      heard: this.heardBy(process.index),
      lease: this.#leaseOf(namespace, key),
      stale: context.stale as string | undefined,
    };
    this.history.loads.push(run);
    const stale = run.stale === undefined ? "" : `, with ${run.stale} as the stale value`;
    this.note(`  load ${run.id} of ${key} begins in p${process.index} for ${call.id}${stale}`);
    return new Promise((resolve, reject) => {
      const running: RunningLoad = {
        run,
        outcome,
        end: () => {
          this.loads.splice(this.loads.indexOf(running), 1);
          run.end = this.moment;
          if (outcome === "hang") return;
          run.outcome = outcome;
          this.note(`  load ${run.id} ends: ${outcome}`);
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

  #connect(process: number): boolean {
    const [attempt] = this.attempts(process);
    if (attempt === undefined) return false;
    this.network.connect(attempt);
    for (const link of this.#linksOf(process)) link.since = Math.min(link.since, this.#tick);
    return true;
  }

  #linksOf(process: number) {
    return [...this.network.links].filter((link) => link.process === process && link.isClientOpen);
  }

  #hold(process: number, isHeld: boolean): boolean {
    const links = this.#linksOf(process).filter((link) => link.isHeld !== isHeld);
    for (const link of links) link.isHeld = isHeld;
    return links.length > 0;
  }

  #reset(process: number, arrives: boolean): boolean {
    if (this.processes[process]?.state !== "running") return false;
    const links = this.#linksOf(process);
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
    const { master } = this.network;
    const keys = [...master.records.keys()].filter((key) => !key.includes("!g:"));
    const key = keys[rank % Math.max(1, keys.length)];
    if (key === undefined) return false;
    this.note(`  it is ${JSON.stringify(key)}`);
    master.evict(key);
    return true;
  }

  #restart(): boolean {
    if (this.#saved === undefined || this.hasTwoMasters) return false;
    this.network.master.restart(this.#saved, this.#identity());
    this.#resyncReplica();
    return true;
  }

  #switch(isDown: boolean): boolean {
    if (this.network.isDown === isDown) return false;
    this.network.isDown = isDown;
    if (isDown) this.network.master.dropAll();
    return true;
  }

  /** Between `promote` and `failover`. */
  get hasTwoMasters(): boolean {
    return this.network.master !== this.#servers[0];
  }

  #replicate(count: number): boolean {
    const [, replica] = this.#servers;
    if (replica === undefined || this.hasTwoMasters || this.#replication.length === 0) return false;
    for (const { key, kept } of this.#replication.splice(0, count)) {
      replica.follow(key, kept);
    }
    return true;
  }

  #promote(): boolean {
    const [, replica] = this.#servers;
    if (replica === undefined || this.hasTwoMasters) return false;
    replica.promote(this.#identity());
    this.network.master = replica;
    return true;
  }

  /** `keepsConnections`: those of the former master. */
  #failover(keepsConnections: boolean): boolean {
    if (!this.#promote() && !this.hasTwoMasters) return false;
    this.#servers.reverse();
    this.#resyncReplica(keepsConnections);
    return true;
  }

  #resyncReplica(keepsConnections = false): void {
    const [master, replica] = this.#servers;
    this.#replication = [];
    if (master === undefined) return;
    if (keepsConnections) replica?.demote(master);
    else replica?.resync(master);
  }

  /** As Redis identifies a run or a history: 40 hexadecimal digits. */
  #identity(): string {
    return (++this.#ids).toString(16).padStart(40, "f");
  }
}

const describeError = (error: Error): string => {
  const { code } = error as { code?: unknown };
  return error instanceof LoadError ? `the error of ${error.message}` : `${String(code)} (${error.message})`;
};

let stamped: Records | undefined;

/** A store that has been used before: time always begins at the same moment. */
function warmed(now: number): Records {
  stamped ??= groupStamps(now);
  return stamped;
}

/** The stamps of all tag groups. */
function groupStamps(now: number): Records {
  const records: Records = new Map();
  for (const names of [spelling("x"), spelling("x").child("c")]) {
    for (let group = 0; group < TAG_GROUPS; group++) {
      const expires = now + 48 * 3_600_000;
      const version = `g${String(group).padStart(7, "0")}`;
      const frame = Buffer.from(encodeRecord({ kind: "stamp", version, expires }));
      records.set(names.groupStamp(group), { frame, expires });
    }
  }
  return records;
}
