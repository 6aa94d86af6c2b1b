// xcache health: whether the cache works, for the health checks of containers and load balancers.
import { toWire } from "../../core/wire.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { failureOf } from "../failure.ts";
import { unlessStopped } from "../interrupt.ts";
import { type Session, withOpenSession } from "../session.ts";
import { tableLines } from "../terminal/display-width.ts";
import { escapeControls } from "../terminal/escape.ts";
import { latencyText } from "../terminal/format-duration.ts";

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out, interrupt } = context;
  const check = async ({ cache, address }: Session): Promise<ExitCode> => {
    // A failed connection is a result here, not an error.
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
        tableLines(checks.map(({ name, ok, detail }) => [`  ${mark(ok)}`, name, escapeControls(detail)])),
      );
    } else {
      const why = result.isHealthy
        ? `answered in ${latencyText(result.latencySeconds)}`
        : failureOf(result.error ?? "did not answer", false).message;
      await out.line(`${painted(context, status)} ${address} ${why}`);
    }
    if (status === "unhealthy") out.note("run `xcache doctor` to find out why");
    return status === "unhealthy" ? EXIT.failed : EXIT.ok;
  };
  return withOpenSession(
    context,
    async (session) => (await unlessStopped(check(session), interrupt.signal)) ?? EXIT.interrupted,
  );
}

function painted({ out }: CommandContext, status: "healthy" | "degraded" | "unhealthy"): string {
  const { green, yellow, red } = out.data;
  return { healthy: green, degraded: yellow, unhealthy: red }[status](status);
}
