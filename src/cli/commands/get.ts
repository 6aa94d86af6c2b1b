// xcache get and xcache tags: the value and the tags of one entry.

import type { CommandContext, CommandInput } from "../command-spec.ts";
import { entryRow, missingEntry } from "../entries/entry-scan.ts";
import { toJson } from "../entries/json-value.ts";
import { rawValue, typeOf, valueText } from "../entries/value-text.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";
import { withSession } from "../session.ts";
import { escapeControls, isUnsafe } from "../terminal/escape.ts";

export function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const key = args[0] ?? "";
  return withSession(context, async ({ cache }) => {
    const value = await cache.get(key);
    if (value === undefined) throw missingEntry(key);
    if (options.raw === true) await out.bytes(requireHarmless(rawValue(value), out.isTerminal));
    else if (out.json) {
      const entry = await cache.inspect(key);
      if (entry === undefined) throw missingEntry(key);
      const { size_bytes: value_bytes, ...row } = entryRow(entry);
      await out.jsonLine({ ...row, type: typeOf(value), value_bytes, value: toJson(value) });
    } else await out.lines([valueText(value, out.data.isColorSupported)]);
    return EXIT.ok;
  });
}

export function tags(context: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const key = args[0] ?? "";
  return withSession(context, async ({ cache }) => {
    const found = await cache.tags(key);
    if (found === undefined) throw missingEntry(key);
    if (out.json) await out.jsonLine({ key, tags: found });
    else if (found.length === 0) out.note("the entry has no tags");
    else await out.lines(found.map(escapeControls));
    return EXIT.ok;
  });
}

function requireHarmless(raw: Uint8Array | string, isTerminal: boolean): Uint8Array | string {
  const text = typeof raw === "string" ? raw : Buffer.from(raw).toString("latin1");
  if (!isTerminal || !isUnsafe(text)) return raw;
  throw new CommandError(
    "refusing to print control characters to a terminal",
    "Redirect to a file or a pipe, or omit --raw.",
  );
}
