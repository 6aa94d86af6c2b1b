// What a process can be in, each learned once: by giving a real process all that led there.
//
// A process does not know the program it runs, nor the other process, so what is learned is the same for all programs. It goes
// on from what it has in memory, whatever led there: two ways to the same standing are one from there on.
//
// - Nothing under way: standings are the same when their memory is; see memory.ts.
// - A call or a load under way: functions that wait have variables, which cannot be seen. They come from what the process was
//   given since it was last at rest, and from its memory. So that must be the same too, except for what the store pushed
//   meanwhile: a push resumes no function, and what it changes is in memory.
import { isChange, type Operation } from "../operations.ts";
import { type Input, LiveProcess, type Mark } from "./live-process.ts";
import { Numbering } from "./numbering.ts";

/** What decides how a process goes on. */
interface Standing {
  readonly number: number;
  readonly process: number;
  /** What led here first. */
  readonly parent: Standing | undefined;
  readonly input: Input | undefined;
  readonly isFree: boolean;
  readonly isLoading: boolean;
  readonly due: number;
  /** When it was last at rest, and what it was given since, without pushes. */
  readonly since: string;
}

/** What a process does in answer to an input. */
interface Step {
  readonly standing: Standing;
  /** The numbers of the commands it sends. */
  readonly sent: readonly number[];
  readonly marks: readonly Mark[];
}

/** A standing, with what the process did until then and, of that, what it did last. */
export interface ProcessState {
  /** The same for all states with the same standing and story. */
  readonly number: number;
  readonly standing: Standing;
  readonly sent: readonly number[];
  readonly marks: readonly Mark[];
  /** What the checker sees of the process since the beginning, the order of its own events included. */
  readonly story: number;
  /** The call that began last: a process has one at a time. */
  readonly latest: Operation | undefined;
  readonly begunCalls: number;
  readonly begunChanges: number;
  readonly begunLoads: number;
  readonly endedChanges: number;
  readonly endedSets: number;
}

/** Real processes that are kept in the standings they are in. */
const MOST_LIVE = 40;

export class ProcessStates {
  readonly #commands: Numbering<readonly string[]>;
  readonly #frames: Numbering<string>;
  readonly #stories: Numbering<undefined>;
  readonly #areMerged: boolean;
  readonly #standings = new Map<string, Standing>();
  /** By the standing and the input. */
  readonly #steps = new Map<string, Step>();
  readonly #states = new Numbering<undefined>();
  /** By the state and the input. */
  readonly #following = new Map<string, ProcessState>();
  readonly #live = new Map<Standing, LiveProcess>();

  /** `areMerged`: whether standings are one that cannot be told apart. Otherwise only the same inputs lead to the same one. */
  constructor(
    commands: Numbering<readonly string[]>,
    frames: Numbering<string>,
    stories: Numbering<undefined>,
    areMerged: boolean,
  ) {
    this.#commands = commands;
    this.#frames = frames;
    this.#stories = stories;
    this.#areMerged = areMerged;
  }

  async first(process: number): Promise<ProcessState> {
    const live = await LiveProcess.start(process);
    const standing = this.#standingOf(live, { process, isFree: true, isLoading: false, due: live.due });
    const story = this.#stories.of(`${process}`, () => undefined);
    this.#keep(standing, live);
    return {
      number: this.#numberOf(standing, story),
      standing,
      sent: [],
      marks: [],
      story,
      latest: undefined,
      begunCalls: 0,
      begunChanges: 0,
      begunLoads: 0,
      endedChanges: 0,
      endedSets: 0,
    };
  }

  begun(state: ProcessState, name: Extract<Input, { do: "begin" }>["name"], time: number) {
    const spelling = `${time} begin ${name}`;
    return this.#known(state, spelling) ?? this.#learn(state, spelling, { do: "begin", name, time });
  }

  /** `frame` is the number of a frame. */
  delivered(state: ProcessState, frame: number, time: number) {
    const spelling = `${time} ${frame}`;
    return (
      this.#known(state, spelling) ??
      this.#learn(state, spelling, { do: "deliver", frame: this.#frames.at(frame), time })
    );
  }

  loaded(state: ProcessState, time: number) {
    const spelling = `${time} load`;
    return this.#known(state, spelling) ?? this.#learn(state, spelling, { do: "load", time });
  }

  ticked(state: ProcessState, time: number) {
    const spelling = `${time} tick`;
    return this.#known(state, spelling) ?? this.#learn(state, spelling, { do: "tick", time });
  }

  #known(state: ProcessState, spelling: string): ProcessState | undefined {
    const key = `${state.number} ${spelling}`;
    const known = this.#following.get(key);
    if (known !== undefined) return known;
    const step = this.#steps.get(`${state.standing.number} ${spelling}`);
    if (step === undefined) return undefined;
    const following = this.#stateAfter(state, step);
    this.#following.set(key, following);
    return following;
  }

  async #learn(state: ProcessState, spelling: string, input: Input): Promise<ProcessState> {
    const { standing } = state;
    const live = await this.#liveIn(standing);
    const { sent, marks, ...rest } = await live.receive(input);
    const next = this.#standingOf(live, { ...rest, process: standing.process }, standing, input);
    this.#steps.set(`${standing.number} ${spelling}`, {
      standing: next,
      sent: sent.map((command) => this.#commands.of(command.join("\u0100"), () => command)),
      marks,
    });
    this.#keep(next, live);
    return this.#known(state, spelling) as ProcessState;
  }

  #standingOf(
    live: LiveProcess,
    rest: Pick<Standing, "process" | "isFree" | "isLoading" | "due">,
    parent?: Standing,
    input?: Input,
  ): Standing {
    const isAtRest = rest.isFree && !rest.isLoading;
    const number = this.#standings.size;
    const since = isAtRest ? `${number}` : sinceRest(parent, input);
    const key = this.#areMerged ? `${rest.process} ${live.memory} ${isAtRest ? "" : since}` : `${number}`;
    const known = this.#standings.get(key);
    if (known !== undefined) return known;
    const standing: Standing = { ...rest, number, parent, input, since };
    this.#standings.set(key, standing);
    return standing;
  }

  #stateAfter(before: ProcessState, { standing, sent, marks }: Step): ProcessState {
    if (marks.length === 0)
      return { ...before, number: this.#numberOf(standing, before.story), standing, sent, marks };
    const begins = marks.find((mark) => mark.what === "call begins");
    const latest = begins?.call.operation ?? before.latest;
    const ends = marks.some(({ what }) => what === "call ends") ? latest : undefined;
    const story = this.#stories.of(`${before.story}: ${marks.map(described).join("; ")}`, () => undefined);
    return {
      number: this.#numberOf(standing, story),
      standing,
      sent,
      marks,
      story,
      latest,
      begunCalls: before.begunCalls + Number(begins !== undefined),
      begunChanges: before.begunChanges + Number(begins !== undefined && isChange(begins.call.operation)),
      begunLoads: before.begunLoads + Number(marks.some(({ what }) => what === "load begins")),
      endedChanges: before.endedChanges + Number(ends !== undefined && isChange(ends)),
      endedSets: before.endedSets + Number(ends?.do === "set"),
    };
  }

  #numberOf(standing: Standing, story: number): number {
    return this.#states.of(`${standing.number} ${story}`, () => undefined);
  }

  /** A real process in this standing, which is taken from where it is kept. */
  async #liveIn(standing: Standing): Promise<LiveProcess> {
    const inputs: Input[] = [];
    let from = standing;
    while (!this.#live.has(from) && from.parent !== undefined) {
      inputs.push(from.input as Input);
      from = from.parent;
    }
    const live = this.#live.get(from) ?? (await LiveProcess.start(standing.process));
    this.#live.delete(from);
    for (const input of inputs.reverse()) await live.receive(input);
    return live;
  }

  #keep(standing: Standing, live: LiveProcess): void {
    this.#live.get(standing)?.end();
    this.#live.set(standing, live);
    if (this.#live.size <= MOST_LIVE) return;
    const [[oldest, discarded]] = this.#live as unknown as [[Standing, LiveProcess]];
    this.#live.delete(oldest);
    discarded.end();
  }
}

/** Frames of the store that answer no command begin with this. */
const PUSH = ">";

function sinceRest(parent: Standing | undefined, input: Input | undefined): string {
  if (parent === undefined || input === undefined) throw new Error("a process begins at rest");
  if (input.do === "deliver" && input.frame.startsWith(PUSH)) return parent.since;
  return `${parent.since}\n${JSON.stringify(input)}`;
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
