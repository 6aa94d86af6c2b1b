// xcache advise: advice based on the cache's metrics.
import { toWire } from "../../core/wire.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const { since = 3_600 } = options as { readonly since?: number };
  return withSession(context, async ({ cache }) => {
    const advice = await cache.advise({ since });
    const { red, yellow, cyan } = out.data;
    const mark = { problem: red("problem"), warning: yellow("warning"), info: cyan("info") };
    if (out.json) await out.jsonLine(toWire({ advice }));
    else if (advice.length === 0) out.note("nothing stands out in this period");
    else {
      for (const { severity, title, evidence, suggestion } of advice) {
        await out.line(`  ${mark[severity]} ${escapeControls(title)}`);
        await out.line(`      ${escapeControls(evidence)}`);
        await out.line(`      ${cyan("→")} ${escapeControls(suggestion)}`);
      }
    }
    return EXIT.ok;
  });
}
