// xcache ping: is the store there, what is it, and how far away.

import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { latencyText } from "../duration.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { storeFacts } from "../store-facts.ts";
import { tableLines } from "../table.ts";

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out, interrupt } = context;
  const count = (options.count as number | undefined) ?? 1;
  return withSession(context, async (session) => {
    const facts = await storeFacts(session);
    // The first one is not measured: it pays for what is set up only once.
    await ping(session);
    const latencies: number[] = [];
    for (let at = 0; at < count && !context.stop.aborted; at++) {
      const seconds = await ping(session);
      latencies.push(seconds);
      if (count > 1 && !out.json) await out.line(`${at + 1}  ${latencyText(seconds)}`);
    }
    const summary = summarise(latencies);
    if (out.json) {
      await out.jsonLine({
        address: session.address,
        backend: facts.backend,
        server: facts.server,
        version: facts.version,
        count: latencies.length,
        latency_seconds: summary,
      });
    } else {
      const times =
        count === 1
          ? latencyText(summary.average)
          : `least ${latencyText(summary.least)}, average ${latencyText(summary.average)}, most ${latencyText(summary.most)}`;
      await out.lines(
        tableLines([
          [out.data.green("PONG"), times],
          ["store", facts.title],
          ["address", session.address],
        ]),
      );
    }
    return interrupt.isRaised ? EXIT.interrupted : EXIT.ok;
  });
}

async function ping({ cache }: Session): Promise<number> {
  const { isHealthy, latencySeconds, error } = await cache.healthCheck();
  if (!isHealthy) throw error ?? new Error("the store did not answer");
  return latencySeconds;
}

interface Summary {
  readonly least: number;
  readonly average: number;
  readonly most: number;
}

function summarise(latencies: readonly number[]): Summary {
  const sum = latencies.reduce((total, each) => total + each, 0);
  return {
    least: Math.min(...latencies),
    average: sum / latencies.length,
    most: Math.max(...latencies),
  };
}
