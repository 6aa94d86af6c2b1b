// Shows the statistics again and again, until somebody has seen enough.
import { systemClock } from "../../core/clock.ts";
import type { FleetStats } from "../../core/stats.ts";
import type { CommandContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { failureOf } from "../failure.ts";
import { unlessStopped } from "../interrupt.ts";
import type { Session } from "../session.ts";
import { listenToKeys } from "../terminal/key-press.ts";
import { Redraw } from "../terminal/redraw.ts";
import { statsJson } from "./fleet-figures.ts";
import { WatchSeries } from "./watch-series.ts";
import { watchLine, watchLines } from "./watch-view.ts";

export interface WatchOptions {
  readonly intervalMs: number;
  /** How many looks; Infinity: until it is ended. */
  readonly count: number;
  look(): Promise<FleetStats>;
}

/** Ends with 0 after `q` or the last look, with 130 after Ctrl-C. */
export async function watch(
  context: CommandContext,
  session: Session,
  options: WatchOptions,
): Promise<ExitCode> {
  const { out, interrupt, stop, stdin } = context;
  const isDrawn = out.isAnimated && !out.json;
  const watching = new Watching(context, session, isDrawn);
  const keys = isDrawn ? listenToKeys(stdin, (key) => watching.pressed(key)) : undefined;
  const redraw = (): void => watching.draw();
  if (isDrawn) out.stdout.on("resize", redraw);
  watching.begin();
  try {
    for (let looked = 0; looked < options.count && !stop.aborted && !watching.isOver; ) {
      if (!watching.isPaused) {
        // A store that is not there at the start is an error; later on it may come back.
        await watching.show(options.look, looked === 0);
        looked++;
      }
      if (looked < options.count) await watching.pause(options.intervalMs);
    }
  } finally {
    keys?.end();
    if (isDrawn) out.stdout.off("resize", redraw);
    watching.end();
  }
  return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
}

class Watching {
  readonly #context: CommandContext;
  readonly #session: Session;
  readonly #series = new WatchSeries();
  readonly #frame: Redraw | undefined;
  /** Nobody waits for the look that is under way. */
  readonly #left = new AbortController();
  #wake: () => void = () => {};
  #showsHelp = false;
  #trouble: string | undefined;
  isPaused = false;
  isOver = false;

  constructor(context: CommandContext, session: Session, isDrawn: boolean) {
    this.#context = context;
    this.#session = session;
    this.#frame = isDrawn ? new Redraw(context.out.stdout) : undefined;
  }

  begin(): void {
    this.#context.stop.addEventListener("abort", this.leave);
    this.#frame?.begin();
  }

  end(): void {
    this.#context.stop.removeEventListener("abort", this.leave);
    this.#frame?.end();
  }

  pressed(key: string): void {
    if (key === "\u0003") this.#context.interrupt.raise();
    else if (key === "q") this.leave();
    else if (key === "p") this.isPaused = !this.isPaused;
    else if (key === "r") this.#series.reset();
    else if (key === "h") this.#showsHelp = !this.#showsHelp;
    else return;
    this.draw();
    if (key === "q" || (key === "p" && !this.isPaused)) this.#wake();
  }

  readonly leave = (): void => {
    this.isOver = true;
    this.#left.abort();
  };

  async show(look: () => Promise<FleetStats>, isFirst: boolean): Promise<void> {
    const { out } = this.#context;
    try {
      const stats = await unlessStopped(look(), this.#left.signal);
      if (stats === undefined) return;
      this.#trouble = undefined;
      this.#series.add(stats, this.#session.clock.now());
      if (this.#frame === undefined) await this.#print(stats);
    } catch (error) {
      if (isFirst) throw error;
      this.#trouble = failureOf(error, false).message;
      if (this.#frame === undefined) out.say(this.#trouble);
    }
    this.draw();
  }

  draw(): void {
    this.#frame?.draw(
      watchLines(this.#context.out, {
        address: this.#session.address,
        series: this.#series,
        isPaused: this.isPaused,
        showsHelp: this.#showsHelp,
        trouble: this.#trouble,
      }),
    );
  }

  /** Until the time is over, a key asks for the next look, or it is all over. */
  async pause(ms: number): Promise<void> {
    const { stop } = this.#context;
    if (stop.aborted || this.isOver) return;
    await new Promise<void>((resolve) => {
      const timer = this.#session.clock.after(ms, resolve);
      timer.hold?.(true);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
      stop.addEventListener("abort", this.#wake, { once: true });
    });
    stop.removeEventListener("abort", this.#wake);
  }

  async #print(stats: FleetStats): Promise<void> {
    const { out } = this.#context;
    const at = new Date(systemClock.wall?.() ?? systemClock.now()).toISOString();
    if (out.json) await out.jsonLine({ at, ...statsJson(stats, this.#session.space.counters.now()) });
    else await out.line(watchLine(stats, this.#series, at));
    await out.flush();
  }
}
