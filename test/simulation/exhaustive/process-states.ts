// The states that a process can be in, as a tree: what it was given from the beginning decides everything it does.
//
// A process does not know the program it runs, nor the other process, so its states are the same for all programs. Those that
// are known cost nothing; a new one is seen by giving a real process all that led to it.
import { isChange, type Operation } from "../operations.ts";
import { type Answer, type Input, LiveProcess, type Mark } from "./live-process.ts";
import { Numbering } from "./numbering.ts";

export interface ProcessState {
  readonly number: number;
  readonly process: number;
  readonly parent: ProcessState | undefined;
  /** What led here from the parent, and what the process did then: the numbers of the commands it sent, and its marks. */
  readonly input: Input | undefined;
  readonly sent: readonly number[];
  readonly marks: readonly Mark[];
  /** What the checker sees of the process since the beginning, the order of its own events included. */
  readonly story: number;
  readonly isFree: boolean;
  readonly isLoading: boolean;
  readonly due: number;
  /** The call that began last: a process has one at a time. */
  readonly latest: Operation | undefined;
  readonly begunCalls: number;
  readonly begunChanges: number;
  readonly begunLoads: number;
  readonly endedChanges: number;
  readonly endedSets: number;
}

/** Real processes that are kept in the states they are in. */
const MOST_LIVE = 40;

export class ProcessStates {
  readonly #commands: Numbering<readonly string[]>;
  readonly #frames: Numbering<string>;
  readonly #stories = new Numbering<undefined>();
  /** What follows a state, by the state and the input. */
  readonly #following = new Map<string, ProcessState>();
  readonly #live = new Map<ProcessState, LiveProcess>();
  #states = 0;

  constructor(commands: Numbering<readonly string[]>, frames: Numbering<string>) {
    this.#commands = commands;
    this.#frames = frames;
  }

  async first(process: number): Promise<ProcessState> {
    const live = await LiveProcess.start(process);
    const state: ProcessState = {
      number: this.#states++,
      process,
      parent: undefined,
      input: undefined,
      sent: [],
      marks: [],
      story: this.#stories.of(`${process}`, () => undefined),
      isFree: true,
      isLoading: false,
      due: live.due,
      latest: undefined,
      begunCalls: 0,
      begunChanges: 0,
      begunLoads: 0,
      endedChanges: 0,
      endedSets: 0,
    };
    this.#keep(state, live);
    return state;
  }

  begun(state: ProcessState, name: Extract<Input, { do: "begin" }>["name"], time: number) {
    return this.#after(`${state.number} ${time} begin ${name}`, state, { do: "begin", name, time });
  }

  /** `frame` is the number of a frame. */
  delivered(state: ProcessState, frame: number, time: number) {
    const key = `${state.number} ${time} ${frame}`;
    return (
      this.#following.get(key) ??
      this.#learn(key, state, { do: "deliver", frame: this.#frames.at(frame), time })
    );
  }

  loaded(state: ProcessState, time: number) {
    return this.#after(`${state.number} ${time} load`, state, { do: "load", time });
  }

  ticked(state: ProcessState, time: number) {
    return this.#after(`${state.number} ${time} tick`, state, { do: "tick", time });
  }

  #after(key: string, state: ProcessState, input: Input): ProcessState | Promise<ProcessState> {
    return this.#following.get(key) ?? this.#learn(key, state, input);
  }

  async #learn(key: string, parent: ProcessState, input: Input): Promise<ProcessState> {
    const live = await this.#liveIn(parent);
    const answer = await live.receive(input);
    const state = this.#stateAfter(parent, input, answer);
    this.#following.set(key, state);
    this.#keep(state, live);
    return state;
  }

  #stateAfter(parent: ProcessState, input: Input, { sent, marks, ...standing }: Answer): ProcessState {
    const begins = marks.find((mark) => mark.what === "call begins");
    const latest = begins?.call.operation ?? parent.latest;
    const ends = marks.some(({ what }) => what === "call ends") ? latest : undefined;
    const story = marks.length === 0 ? parent.story : this.#storyOf(parent.story, marks);
    return {
      ...standing,
      number: this.#states++,
      process: parent.process,
      parent,
      input,
      sent: sent.map((command) => this.#commands.of(command.join("\u0100"), () => command)),
      marks,
      story,
      latest,
      begunCalls: parent.begunCalls + Number(begins !== undefined),
      begunChanges: parent.begunChanges + Number(begins !== undefined && isChange(begins.call.operation)),
      begunLoads: parent.begunLoads + Number(marks.some(({ what }) => what === "load begins")),
      endedChanges: parent.endedChanges + Number(ends !== undefined && isChange(ends)),
      endedSets: parent.endedSets + Number(ends?.do === "set"),
    };
  }

  #storyOf(before: number, marks: readonly Mark[]): number {
    const lines = marks.map(described);
    return this.#stories.of(`${before}: ${lines.join("; ")}`, () => undefined);
  }

  /** A real process in this state, which is taken from where it is kept. */
  async #liveIn(state: ProcessState): Promise<LiveProcess> {
    const inputs: Input[] = [];
    let from: ProcessState = state;
    while (!this.#live.has(from) && from.parent !== undefined) {
      inputs.push(from.input as Input);
      from = from.parent;
    }
    const live = this.#live.get(from) ?? (await LiveProcess.start(state.process));
    this.#live.delete(from);
    for (const input of inputs.reverse()) await live.receive(input);
    return live;
  }

  #keep(state: ProcessState, live: LiveProcess): void {
    this.#live.set(state, live);
    if (this.#live.size <= MOST_LIVE) return;
    const [[oldest, discarded]] = this.#live as unknown as [[ProcessState, LiveProcess]];
    this.#live.delete(oldest);
    discarded.end();
  }
}

function described(mark: Mark): string {
  switch (mark.what) {
    case "call begins":
      return `${mark.call.id} ${mark.call.operation.do}`;
    case "call ends":
      return `${mark.id} = ${mark.value}`;
    case "load begins":
      return `${mark.load.id} for ${mark.load.call.id}, ${mark.load.stale}`;
    case "load ends":
      return `${mark.id} ends`;
  }
}
