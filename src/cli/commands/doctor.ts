// xcache doctor: checks settings, connection, server and packages, and suggests fixes.
import type { LayeredConfig } from "../../config/resolve.ts";
import { type FieldName, fieldNames, wireName } from "../../config/schema.ts";
import { redactUrl } from "../../core/redact.ts";
import { toWire } from "../../core/wire.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { type Finding, findingLines, runChecks } from "../doctor/checks.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";
import { withOpenSession } from "../session.ts";
import { tableLines } from "../terminal/display-width.ts";
import { escapeControls, jsonText } from "../terminal/escape.ts";
import type { Output } from "../terminal/output.ts";

interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly origin: string;
}

export function run(context: CommandContext, { options }: CommandInput): Promise<ExitCode> {
  const { out, interrupt } = context;
  return withOpenSession(context, async (session) => {
    const settings = settingsOf(session.settings);
    const result = await unlessStopped(runChecks(session), interrupt.signal);
    if (result === undefined) return EXIT.interrupted;
    const { findings, isReached } = result;
    const isFine = findings.every(({ state }) => state !== "problem");
    if (out.json) await out.jsonLine({ ok: isFine, settings, findings });
    else if (options.verbose !== true) await out.lines(shortLines(out, settings, findings));
    else {
      await out.line(out.data.bold("Settings"));
      const rows = settings.map(({ name, value, origin }) => [
        `  ${name}`,
        typeof value === "string" ? escapeControls(value) : jsonText(value),
        origin === "default" ? out.data.dim(origin) : out.data.cyan(origin),
      ]);
      await out.lines(tableLines(rows));
      await out.line("");
      await out.line(out.data.bold("Findings"));
      for (const finding of findings) await out.lines(findingLines(out, finding));
    }
    await out.flush();
    if (!isReached) return EXIT.unreachable;
    return isFine ? EXIT.ok : EXIT.failed;
  });
}

/** What needs attention, or that nothing does; and the settings that somebody has made. */
function shortLines(
  out: Output,
  settings: readonly Setting[],
  findings: readonly Finding[],
): readonly string[] {
  const notable = findings.filter(({ state, name }) => state !== "ok" || name === "connection");
  const made = settings.filter(({ origin }) => origin !== "default").map(({ name }) => name);
  const isWell = findings.every(({ state }) => state === "ok");
  return [
    ...notable.flatMap((finding) => findingLines(out, finding)),
    ...(isWell ? [`  ${out.data.green("ok")} all ${findings.length} checks`] : []),
    out.data.dim(
      `  settings: ${made.length === 0 ? "all default" : made.join(", ")}; --verbose shows all of them`,
    ),
  ];
}

/** Without the fields that can only be set in code. */
function settingsOf({ config, sources }: LayeredConfig): readonly Setting[] {
  const shown = fieldNames().filter((field) => field !== "backend" && field !== "metrics");
  return shown.map((field) => ({
    name: wireName(field),
    value: settingValue(config, field),
    origin: sources[field],
  }));
}

function settingValue(config: LayeredConfig["config"], field: FieldName): unknown {
  const value: unknown = config[field];
  if (field === "kvUrl") return redactUrl(config.kvUrl);
  if (value === undefined) return null;
  if (field === "password") return "***";
  if (value === Number.POSITIVE_INFINITY) return "never";
  if (field === "tables") {
    const tables = Object.entries(config.tables).map(([name, table]) => [name, toWire(table)]);
    return Object.fromEntries(tables);
  }
  return toWire(value);
}
