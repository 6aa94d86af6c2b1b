// xcache health: does the cache work. Made for health checks of containers and load balancers.
import { toWire } from "../../core/wire.ts";
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { latencyText } from "../duration.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { openSession } from "../session.ts";
import { tableLines } from "../table.ts";
import { visible } from "../visible-text.ts";

export async function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const { cache, address } = openSession(context);
  try {
    // Failing to connect is an answer, not an error.
    await cache.connect().catch(() => {});
    const result = await cache.healthCheck();
    const detailed = await cache.detailedHealthCheck();
    const { status, checks } = detailed;
    if (out.json) {
      const whole = toWire(detailed, ["byOperation"]);
      const brief = { status, kv_connected: detailed.kvConnected, checks };
      await out.jsonLine({
        ...(options.detailed === true ? whole : brief),
        address,
        latency_seconds: result.latencySeconds,
      });
    } else if (options.detailed === true) {
      const mark = (ok: boolean): string => (ok ? out.data.green("ok") : out.data.red("failed"));
      await out.line(`${painted(context, status)} ${address}`);
      await out.lines(
        tableLines(checks.map(({ name, ok, detail }) => [`  ${mark(ok)}`, name, visible(detail)])),
      );
    } else {
      const why = result.isHealthy
        ? `answered in ${latencyText(result.latencySeconds)}`
        : visible(result.error?.message ?? "did not answer");
      await out.line(`${painted(context, status)} ${address} ${why}`);
    }
    if (status === "unhealthy") out.note("`xcache doctor` looks for the reason");
    return status === "unhealthy" ? EXIT.failed : EXIT.ok;
  } finally {
    await cache.disconnect().catch(() => {});
  }
}

function painted({ out }: CommandContext, status: "healthy" | "degraded" | "unhealthy"): string {
  const { green, yellow, red } = out.data;
  return { healthy: green, degraded: yellow, unhealthy: red }[status](status);
}
