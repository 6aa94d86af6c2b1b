// xcache ping: tests the connection and prints the kind of store, its version and the latency.
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { readServerInfo, type ServerInfo } from "../doctor/server-info.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";
import { type Session, withSession } from "../session.ts";
import { tableLines } from "../terminal/display-width.ts";
import { latencyText } from "../terminal/format-duration.ts";
import type { Output } from "../terminal/output.ts";

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out, interrupt, stop } = context;
  const count = (options.count as number | undefined) ?? 1;
  const work = async (session: Session): Promise<ExitCode> => {
    const info = await unlessStopped(readServerInfo(session), stop);
    // Not measured: the first ping includes one-time setup.
    await unlessStopped(ping(session), stop);
    const summary = new LatencySummary();
    while (summary.count < count && !stop.aborted) {
      const seconds = await unlessStopped(ping(session), stop);
      if (seconds === undefined) break;
      summary.add(seconds);
      if (count > 1 && !out.json) await out.line(`${summary.count}  ${latencyText(seconds)}`);
    }
    if (info !== undefined && summary.count > 0) await printSummary(out, session.address, info, summary);
    return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
  };
  return withSession(context, work, { reportsProgress: true });
}

async function printSummary(
  out: Output,
  address: string,
  info: ServerInfo,
  summary: LatencySummary,
): Promise<void> {
  const { backend, server, version, title } = info;
  const { count, least, average, most } = summary;
  if (out.json) {
    const latency_seconds = { least, average, most };
    await out.jsonLine({ address, backend, server, version, count, latency_seconds });
    return;
  }
  const times =
    count === 1
      ? latencyText(average)
      : `min ${latencyText(least)}, avg ${latencyText(average)}, max ${latencyText(most)}`;
  await out.lines(
    tableLines([
      [out.data.green("PONG"), times],
      ["store", title],
      ["address", address],
    ]),
  );
}

async function ping({ cache }: Session): Promise<number> {
  const { isHealthy, latencySeconds, error } = await cache.healthCheck();
  if (!isHealthy) throw error ?? new Error("the store did not answer");
  return latencySeconds;
}

/** Latencies in seconds. */
class LatencySummary {
  count = 0;
  least = Number.POSITIVE_INFINITY;
  most = 0;
  #sum = 0;

  add(seconds: number): void {
    this.count++;
    this.least = Math.min(this.least, seconds);
    this.most = Math.max(this.most, seconds);
    this.#sum += seconds;
  }

  get average(): number {
    return this.#sum / this.count;
  }
}
