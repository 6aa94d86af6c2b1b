// xcache stats: the combined statistics of all processes that use the cache, read from the store.
import type { FleetStats } from "../../core/stats.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { showActivity } from "../stats/activity-view.ts";
import { statsJson } from "../stats/fleet-figures.ts";
import { NO_HISTORY, statsLines } from "../stats/stats-view.ts";
import { watch } from "../stats/watch.ts";

interface Options {
  readonly watch?: boolean;
  /** Seconds. */
  readonly interval?: number;
  readonly since?: number;
  readonly count?: number;
  readonly exact?: boolean;
  readonly functions?: boolean;
  readonly processes?: boolean;
}

export function run(context: CommandContext, input: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const options = input.options as Options;
  const { interval = 2, since = 3_600, count = Number.POSITIVE_INFINITY, exact = false } = options;
  if (options.watch !== true && (options.interval !== undefined || options.count !== undefined)) {
    throw new CommandError("--interval and --count need --watch", "Add --watch, or omit them.");
  }
  requireOneView(options);
  const work = async (session: Session): Promise<ExitCode> => {
    const { cache, namespace } = session;
    if (options.functions === true || options.processes === true) {
      return showActivity(context, session, { since, showsFunctions: options.functions === true });
    }
    const read = (): Promise<FleetStats> => cache.getStats({ fleet: true, since, exact });
    if (options.watch === true) {
      return watch(context, session, { intervalMs: interval * 1_000, count, read });
    }
    const stats = await read();
    const now = namespace.counters.now();
    if (out.json) await out.jsonLine(statsJson(stats, now));
    else {
      await out.lines(statsLines(out, stats, now));
      if (stats.history.length === 0) out.note(NO_HISTORY);
    }
    return EXIT.ok;
  };
  return withSession(context, work, { reportsProgress: options.watch === true });
}

function requireOneView({ watch: isWatched, exact, functions, processes }: Options): void {
  const chosen = [functions && "--functions", processes && "--processes"].filter(Boolean);
  const others = [isWatched && "--watch", exact && "--exact"].filter(Boolean);
  if (chosen.length === 0 || chosen.length + others.length === 1) return;
  throw new CommandError(
    `${[...chosen, ...others].join(" and ")} cannot be combined`,
    "Pass one of them at a time.",
  );
}
