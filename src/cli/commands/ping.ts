// xcache ping: is the store there, what is it, and how far away.

import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { readServerInfo, type ServerInfo } from "../doctor/server-info.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";
import { type Session, withSession } from "../session.ts";
import { latencyText } from "../terminal/format-duration.ts";
import type { Output } from "../terminal/output.ts";
import { tableLines } from "../terminal/table.ts";

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out, interrupt, stop } = context;
  const count = (options.count as number | undefined) ?? 1;
  const work = async (session: Session): Promise<ExitCode> => {
    const facts = await unlessStopped(readServerInfo(session), stop);
    // The first one is not measured: it pays for what is set up only once.
    await unlessStopped(ping(session), stop);
    const summary = new Summary();
    while (summary.count < count && !stop.aborted) {
      const seconds = await unlessStopped(ping(session), stop);
      if (seconds === undefined) break;
      summary.add(seconds);
      if (count > 1 && !out.json) await out.line(`${summary.count}  ${latencyText(seconds)}`);
    }
    if (facts !== undefined && summary.count > 0) await tell(out, session.address, facts, summary);
    return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
  };
  return withSession(context, work, { tellsHowFar: true });
}

async function tell(out: Output, address: string, facts: ServerInfo, summary: Summary): Promise<void> {
  const { backend, server, version, title } = facts;
  const { count, least, average, most } = summary;
  if (out.json) {
    const latency_seconds = { least, average, most };
    await out.jsonLine({ address, backend, server, version, count, latency_seconds });
    return;
  }
  const times =
    count === 1
      ? latencyText(average)
      : `least ${latencyText(least)}, average ${latencyText(average)}, most ${latencyText(most)}`;
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

/** Of latencies in seconds, however many. */
class Summary {
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
