// Refreshes the statistics until the user quits.
import { systemClock } from "../../core/clock.ts";
import type { FleetStats } from "../../core/stats.ts";
import type { CommandContext } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { failureOf } from "../failure.ts";
import { unlessStopped } from "../interrupt.ts";
import type { Session } from "../session.ts";
import { Redraw } from "../terminal/redraw.ts";
import { listenToKeys } from "../terminal/terminal.ts";
import { statsJson } from "./fleet-figures.ts";
import { WatchSeries } from "./watch-series.ts";
import { watchLine, watchLines } from "./watch-view.ts";

export interface WatchOptions {
  readonly intervalMs: number;
  /** Number of refreshes; Infinity: until the user quits. */
  readonly count: number;
  read(): Promise<FleetStats>;
}

/** Returns 0 after `q` or the last refresh, 130 after Ctrl-C. */
export async function watch(
  context: CommandContext,
  session: Session,
  options: WatchOptions,
): Promise<ExitCode> {
  const { out, interrupt, stop, stdin } = context;
  const isDrawn = out.isAnimated && !out.json;
  const display = new WatchDisplay(context, session, isDrawn);
  const keys = isDrawn ? listenToKeys(stdin, (key) => display.keyPressed(key)) : undefined;
  const onResize = (): void => display.draw();
  if (isDrawn) out.stdout.on("resize", onResize);
  display.begin();
  try {
    for (let refreshes = 0; refreshes < options.count && !stop.aborted && !display.isOver; ) {
      if (!display.isPaused) {
        // An unreachable store is an error at the start; later it may come back.
        await display.refresh(options.read, refreshes === 0);
        refreshes++;
      }
      if (refreshes < options.count) await display.pause(options.intervalMs);
    }
  } finally {
    keys?.end();
    if (isDrawn) out.stdout.off("resize", onResize);
    display.end();
  }
  return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
}

class WatchDisplay {
  readonly #context: CommandContext;
  readonly #session: Session;
  readonly #series = new WatchSeries();
  readonly #redraw: Redraw | undefined;
  /** Ends the wait for a read in flight. */
  readonly #quit = new AbortController();
  #wake: () => void = () => {};
  #showsHelp = false;
  #error: string | undefined;
  isPaused = false;
  isOver = false;

  constructor(context: CommandContext, session: Session, isDrawn: boolean) {
    this.#context = context;
    this.#session = session;
    this.#redraw = isDrawn ? new Redraw(context.out.stdout) : undefined;
  }

  begin(): void {
    this.#context.stop.addEventListener("abort", this.quit);
    this.#redraw?.begin();
  }

  end(): void {
    this.#context.stop.removeEventListener("abort", this.quit);
    this.#redraw?.end();
  }

  keyPressed(key: string): void {
    if (key === "\u0003") this.#context.interrupt.raise();
    else if (key === "q") this.quit();
    else if (key === "p") this.isPaused = !this.isPaused;
    else if (key === "r") this.#series.reset();
    else if (key === "h") this.#showsHelp = !this.#showsHelp;
    else return;
    this.draw();
    if (key === "q" || (key === "p" && !this.isPaused)) this.#wake();
  }

  readonly quit = (): void => {
    this.isOver = true;
    this.#quit.abort();
  };

  async refresh(read: () => Promise<FleetStats>, isFirst: boolean): Promise<void> {
    const { out } = this.#context;
    try {
      const stats = await unlessStopped(read(), this.#quit.signal);
      if (stats === undefined) return;
      this.#error = undefined;
      const { clock, namespace } = this.#session;
      this.#series.add(stats, clock.now(), namespace.counters.now());
      if (this.#redraw === undefined) await this.#print(stats);
    } catch (error) {
      if (isFirst) throw error;
      this.#error = failureOf(error, false).message;
      if (this.#redraw === undefined) out.say(this.#error);
    }
    this.draw();
  }

  draw(): void {
    this.#redraw?.draw(
      watchLines(this.#context.out, {
        address: this.#session.address,
        series: this.#series,
        isPaused: this.isPaused,
        showsHelp: this.#showsHelp,
        error: this.#error,
      }),
    );
  }

  /** Until the interval has passed, a key asks for a refresh, or the user quits. */
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
    if (out.json) await out.jsonLine({ at, ...statsJson(stats, this.#session.namespace.counters.now()) });
    else await out.line(watchLine(stats, this.#series, at));
    await out.flush();
  }
}
