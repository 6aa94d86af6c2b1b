// xcache get: the value under a key.
import { CommandError } from "../command-error.ts";
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { entryRow } from "../entries/entry-scan.ts";
import { toJson } from "../entries/json-value.ts";
import { missingEntry } from "../entries/missing-entry.ts";
import { rawValue, typeOf, valueText } from "../entries/value-text.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { withSession } from "../session.ts";
import { isUnsafe } from "../terminal/escape.ts";

export function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const key = args[0] ?? "";
  return withSession(context, async ({ cache, space }) => {
    const value = await cache.get(key);
    if (value === undefined) throw missingEntry(key);
    if (options.raw === true) await out.bytes(requireHarmless(rawValue(value), out.isTerminal));
    else if (out.json) {
      const entry = await space.inspect(key);
      if (entry === undefined) throw missingEntry(key);
      const { size_bytes: value_bytes, ...row } = entryRow(entry);
      await out.jsonLine({ ...row, type: typeOf(value), value_bytes, value: toJson(value) });
    } else await out.lines([valueText(value, out.data.isColorSupported)]);
    return EXIT.ok;
  });
}

function requireHarmless(raw: Uint8Array | string, isTerminal: boolean): Uint8Array | string {
  const text = typeof raw === "string" ? raw : Buffer.from(raw).toString("latin1");
  if (!isTerminal || !isUnsafe(text)) return raw;
  throw new CommandError(
    "the value holds control characters, which would reach the terminal",
    "Send it to a file or a pipe, or leave --raw away.",
  );
}
