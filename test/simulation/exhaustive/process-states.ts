// What a process can be in, each learned once: by giving a real process all that led there.
//
// A process does not know the program it runs, nor the other process, so what is learned is the same for all programs. It goes
// on from what it has in memory, whatever led there: two ways to the same standing are one from there on.
//
// - Nothing under way: standings are the same when their memory is; see memory.ts.
// - A call or a load under way: functions that wait have variables, which cannot be seen. They come from what the process was
//   given since it was last at rest, and from its memory. So that must be the same too, except for what the store pushed
//   while no function listened: what that changes is in memory.
//
// Whenever a process is given again what led to a standing, it must do what was learned, and stand there in the end.
import { isChange, type Operation } from "../operations.ts";
import { type Input, LiveProcess, type Mark } from "./live-process.ts";
import { Numbering } from "./numbering.ts";

/** What decides how a process goes on. */
interface Standing {
  readonly number: number;
  readonly process: number;
  /** What led here first; undefined for the beginning. */
  readonly arrival: Arrival | undefined;
  readonly isFree: boolean;
  readonly isLoading: boolean;
  readonly due: number;
  /** When it was last at rest, and what it was given since, without the pushes that no function heard. */
  readonly since: string;
}

interface Arrival {
  readonly from: Standing;
  readonly input: Input;
  /** Tells the input from others. */
  readonly spelling: string;
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
    const now = { process, arrival: undefined, isFree: true, isLoading: false, due: live.due, since: "" };
    const standing = this.#standingOf(live, now);
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
    const { process } = standing;
    const live = await this.#liveIn(standing);
    const isHeard = live.isListening || !isPush(input);
    const { sent: commands, marks, ...now } = await live.receive(input);
    const sent = this.#numbersOf(commands);
    const isUnheard = !isHeard && sent.length === 0 && marks.length === 0;
    const since = isUnheard ? standing.since : `${standing.since}\n${spelling}: ${sent}`;
    const arrival = { from: standing, input, spelling };
    const next = this.#standingOf(live, { ...now, process, since, arrival });
    this.#steps.set(`${standing.number} ${spelling}`, { standing: next, sent, marks });
    this.#keep(next, live);
    return this.#known(state, spelling) as ProcessState;
  }

  #standingOf(live: LiveProcess, now: Omit<Standing, "number">): Standing {
    const number = this.#standings.size;
    const key = this.#areMerged ? keyOf(live, now) : `${number}`;
    const known = this.#standings.get(key);
    if (known !== undefined) return known;
    const standing: Standing = { ...now, number, since: isAtRest(now) ? `${number}` : now.since };
    this.#standings.set(key, standing);
    return standing;
  }

  #numbersOf(commands: readonly (readonly string[])[]): number[] {
    return commands.map((command) => this.#commands.of(command.join("\u0100"), () => command));
  }

  #stateAfter(before: ProcessState, { standing, sent, marks }: Step): ProcessState {
    if (marks.length === 0)
      return { ...before, number: this.#numberOf(standing, before.story), standing, sent, marks };
    const begins = marks.find((mark) => mark.what === "call begins");
    const latest = begins?.call.operation ?? before.latest;
    const ends = marks.some(({ what }) => what === "call ends") ? latest : undefined;
    const story = this.#stories.of(`${before.story}: ${storyOf(marks)}`, () => undefined);
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
    const arrivals: Arrival[] = [];
    let from = standing;
    while (!this.#live.has(from) && from.arrival !== undefined) {
      arrivals.push(from.arrival);
      from = from.arrival.from;
    }
    const live = this.#live.get(from) ?? (await LiveProcess.start(standing.process));
    this.#live.delete(from);
    for (const arrival of arrivals.reverse()) await this.#repeat(live, arrival);
    if (this.#areMerged && arrivals.length > 0 && this.#standings.get(keyOf(live, standing)) !== standing)
      throw new Error("a process that was given the same again stands elsewhere than before");
    return live;
  }

  /** The process may have come where it is in another way than the one of which this was learned. */
  async #repeat(live: LiveProcess, { from, input, spelling }: Arrival): Promise<void> {
    const { sent, marks } = await live.receive(input);
    const learned = this.#steps.get(`${from.number} ${spelling}`) as Step;
    if (`${learned.sent}` !== `${this.#numbersOf(sent)}` || storyOf(learned.marks) !== storyOf(marks))
      throw new Error(
        `a process that stands as another did goes on otherwise: ${spelling} after ${from.since}`,
      );
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

const isPush = (input: Input): boolean => input.do === "deliver" && input.frame.startsWith(PUSH);

const isAtRest = ({ isFree, isLoading }: Pick<Standing, "isFree" | "isLoading">): boolean =>
  isFree && !isLoading;

/** What is taken for the same standing has the same key. */
const keyOf = (live: LiveProcess, now: Omit<Standing, "number">): string =>
  `${now.process} ${live.memory} ${isAtRest(now) ? "" : now.since}`;

const storyOf = (marks: readonly Mark[]): string => marks.map(described).join("; ");

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
