// xcache set: stores a value under a key.
import { text as textOf } from "node:stream/consumers";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { fromJson } from "../entries/json-value.ts";
import { typeOf } from "../entries/value-text.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";
import { withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";
import { durationText } from "../terminal/format-duration.ts";

interface Options {
  /** Seconds. */
  readonly ttl?: number;
  readonly tags?: readonly string[];
  readonly string?: boolean;
}

export async function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const { out, stdin } = context;
  const { ttl, tags = [], string = false } = options as Options;
  const [key = "", given = ""] = args;
  const text = given === "-" ? await unlessStopped(textOf(stdin), context.interrupt.signal) : given;
  if (text === undefined) return EXIT.interrupted;
  const value = string ? text : readText(text);
  return withSession(context, async ({ cache, settings }) => {
    await cache.set(key, value, { ...(ttl === undefined ? {} : { ttl }), tags });
    const seconds = ttl ?? settings.config.defaultTtl;
    const type = typeOf(value);
    if (out.json) {
      await out.jsonLine({ key, type, ttl_seconds: Number.isFinite(seconds) ? seconds : null, tags });
    } else {
      const end = Number.isFinite(seconds) ? `for ${durationText(seconds)}` : "without expiry";
      await out.line(`stored "${escapeControls(key)}" (${type}) ${end}`);
    }
    return EXIT.ok;
  });
}

function readText(text: string): unknown {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return text;
  }
  try {
    return fromJson(json);
  } catch (error) {
    throw new CommandError(
      `the value is JSON that cannot be stored: ${(error as Error).message}`,
      "Pass --string to store the text itself.",
    );
  }
}
