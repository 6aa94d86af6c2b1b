// One real process alone: it gets inputs, and what it does in answer is taken down.
import type { Call, LoadRun } from "../history.ts";
import type { Link } from "../network.ts";
import type { SimulatedProcess } from "../process.ts";
import type { ProcessClock } from "../time.ts";
import { settled } from "../turn.ts";
import type { World } from "../world.ts";
import { digestOf } from "./memory.ts";
import { preparedWorld } from "./prepared.ts";
import { type Name, OPERATIONS } from "./programs.ts";

/** What can reach a process; `time` is when. */
export type Input =
  | { readonly do: "begin"; readonly name: Name; readonly time: number }
  | { readonly do: "deliver"; readonly frame: string; readonly time: number }
  | { readonly do: "load"; readonly time: number }
  | { readonly do: "tick"; readonly time: number };

/** Something that the checker reads: a call or a load begins or ends. The objects are as they were then. */
export type Mark =
  | { readonly what: "call begins"; readonly call: Call }
  | { readonly what: "call ends"; readonly id: string; readonly value: string | undefined }
  | { readonly what: "load begins"; readonly load: LoadRun }
  | { readonly what: "load ends"; readonly id: string };

/** What a process did in answer to an input, and how it stands afterwards. */
export interface Answer {
  readonly sent: readonly (readonly string[])[];
  readonly marks: readonly Mark[];
  readonly isFree: boolean;
  readonly isLoading: boolean;
  /** When its next timer is due. */
  readonly due: number;
}

export class LiveProcess {
  readonly #world: World;
  readonly #index: number;
  readonly #link: Link;

  private constructor(world: World, index: number) {
    this.#world = world;
    this.#index = index;
    [this.#link] = world.network.linksOf(index) as [Link];
  }

  static async start(index: number): Promise<LiveProcess> {
    return new LiveProcess(await preparedWorld(), index);
  }

  async receive(input: Input): Promise<Answer> {
    const world = this.#world;
    const { time, history } = world;
    const index = this.#index;
    const since = world.moment.tick;
    time.now = Math.max(time.now, input.time);
    switch (input.do) {
      case "begin":
        world.calls.begin(index, OPERATIONS[input.name]);
        break;
      case "deliver":
        this.#link.toClient.push({ sequence: 0, text: input.frame });
        this.#link.deliver(1);
        break;
      case "load":
        world.calls.endable()[0]?.end();
        break;
      case "tick":
        time.tick(this.#clock);
    }
    await settled();
    return {
      sent: this.#link.toServer.splice(0),
      marks: this.#marksSince(since),
      isFree: history.calls.every(({ end }) => end !== undefined),
      isLoading: world.calls.loads.length > 0,
      due: time.dueOf(this.#clock),
    };
  }

  get due(): number {
    return this.#world.time.dueOf(this.#clock);
  }

  /** All that it goes on from, as far as it can be seen: what it has in memory, what it began, its timers, its chance. */
  get memory(): string {
    const { history, time } = this.#world;
    const { draws } = this.#clock;
    const timers = time.duesOf(this.#clock);
    return `${history.calls.length} ${history.loads.length} ${draws} ${timers} ${digestOf(this.#process.cache)}`;
  }

  /** Whether a push of the store can resume a call. */
  get isListening(): boolean {
    const { store } = this.#process.root as unknown as {
      store: { SharedStore$keyListeners: Map<string, unknown> };
    };
    return store.SharedStore$keyListeners.size > 0;
  }

  end(): void {
    this.#world.close();
  }

  get #clock(): ProcessClock {
    if (!this.#link.isClientOpen || this.#world.network.attempts.length > 0)
      throw new Error("an exploration has one connection per process, which lasts");
    return this.#process.clock;
  }

  get #process(): SimulatedProcess {
    return this.#world.processes[this.#index] as SimulatedProcess;
  }

  #marksSince(since: number): Mark[] {
    const marks: { readonly tick: number; readonly mark: Mark }[] = [];
    const { calls, loads, faults } = this.#world.history;
    if (faults.length > 0) throw new Error(`a process failed by itself: ${faults[0]?.what}`);
    const add = (tick: number | undefined, mark: () => Mark): void => {
      if (tick !== undefined && tick > since) marks.push({ tick, mark: mark() });
    };
    for (const call of calls) {
      add(call.start.tick, () => ({ what: "call begins", call: { ...call, end: undefined } }));
      add(call.end?.tick, () => ({ what: "call ends", id: call.id, value: call.value }));
    }
    for (const load of loads) {
      add(load.start.tick, () => ({ what: "load begins", load: { ...load, end: undefined } }));
      add(load.end?.tick, () => ({ what: "load ends", id: load.id }));
    }
    return marks.sort((one, other) => one.tick - other.tick).map(({ mark }) => mark);
  }
}
