// xcache complete: prints the completion candidates for the word at the cursor. Never fails and never takes long.
import { systemClock } from "../../core/clock.ts";
import type { CommandContext, CommandInput, GlobalFlags } from "../command-spec.ts";
import { bashCandidate, readBashLine } from "../completion/bash-line.ts";
import { type CompletionPosition, completionPosition } from "../completion/candidates.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { escapeControls } from "../terminal/escape.ts";
import { parseDuration } from "../terminal/format-duration.ts";

/** Limits the scan, because the user is waiting at the prompt; --timeout on the line overrides it. */
const SCAN_SECONDS = 0.5;
const MOST_CANDIDATES = 200;
/** Keys are completed segment by segment, as folders are. */
const PART_END = /[:/.]/;

/** `kind` says what the candidates are; the completion scripts know these names. */
interface Completion {
  readonly kind: "words" | "parts" | "files";
  readonly candidates: readonly string[];
}

export async function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const wordBreaks = options.bashBreaks as string | undefined;
  const line = wordBreaks === undefined ? undefined : readBashLine(args[0] ?? "", wordBreaks);
  const position = completionPosition(line === undefined ? args : line.words.slice(1));
  const { kind, candidates } = await candidatesFor(context, position);
  const whole = candidates.map((candidate) => position.lead + candidate);
  const typed = line === undefined ? whole : whole.map((each) => bashCandidate(each, line));
  await context.out.lines([kind, ...typed.filter((each) => each !== undefined)]);
  return EXIT.ok;
}

async function candidatesFor(context: CommandContext, position: CompletionPosition): Promise<Completion> {
  const { completes, word } = position;
  if (completes === "files") return { kind: "files", candidates: [] };
  if (typeof completes === "object") {
    return { kind: "words", candidates: completes.filter((each) => each.startsWith(word)) };
  }
  const names = await namesInStore(context, position, completes).catch(() => new Set<string>());
  const candidates = [...names].sort().slice(0, MOST_CANDIDATES);
  const hasParts = completes === "keys" && candidates.some((each) => PART_END.test(each.at(-1) ?? ""));
  return { kind: hasParts ? "parts" : "words", candidates };
}

async function namesInStore(
  context: CommandContext,
  position: CompletionPosition,
  what: "keys" | "tags",
): Promise<ReadonlySet<string>> {
  // Loaded lazily: most completions need no store.
  const { openSession } = await import("../session.ts");
  const { scanEntries } = await import("../entries/entry-scan.ts");
  const deadline = new AbortController();
  const flags = flagsOf(position);
  const timer = systemClock.after(flags.timeout * 1_000, () => deadline.abort());
  timer.hold?.(true);
  const session = openSession({ ...context, flags });
  const found = new Set<string>();
  try {
    for await (const batch of scanEntries(session, {}, AbortSignal.any([deadline.signal, context.stop]))) {
      for (const { key, tags } of batch) {
        for (const name of what === "keys" ? [key] : tags) {
          // No shell can insert control characters, such as a line break, safely.
          if (!name.startsWith(position.word) || escapeControls(name) !== name) continue;
          found.add(what === "keys" ? nextPart(name, position.word) : name);
        }
      }
      if (found.size >= MOST_CANDIDATES) break;
    }
  } finally {
    timer.cancel();
    await session.cache.disconnect().catch(() => {});
  }
  return found;
}

function flagsOf({ flags }: CompletionPosition): GlobalFlags & { readonly timeout: number } {
  const last = (name: string): string | undefined => flags.get(name)?.at(-1);
  const [kvUrl, config, prefix] = [last("--kv-url"), last("--config"), last("--prefix")];
  const namespace = flags.get("--namespace");
  return {
    ...(kvUrl === undefined ? {} : { kvUrl }),
    ...(config === undefined ? {} : { config }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(namespace === undefined ? {} : { namespace }),
    timeout: parseDuration(last("--timeout") ?? "") ?? SCAN_SECONDS,
    color: false,
  };
}

/** The key up to the next separator after the typed text: `user:1:name` completes `us` to `user:`. */
function nextPart(key: string, typed: string): string {
  const rest = key.slice(typed.length);
  const end = rest.search(PART_END);
  return end < 0 ? key : key.slice(0, typed.length + end + 1);
}
