// xcache complete: answers the shell's question what can stand at the cursor. Never fails, never takes long.
import { systemClock } from "../../core/clock.ts";
import type { CommandInput } from "../command-spec.ts";
import { bashCandidate, readBashLine } from "../completion/bash-line.ts";
import { type CompletionPosition, completionPosition } from "../completion/candidates.ts";
import type { CommandContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { GlobalFlags } from "../global-flags.ts";
import { escapeControls } from "../terminal/escape.ts";
import { parseDuration } from "../terminal/format-duration.ts";

/** People wait for it with a finger on the key, unless the line says how long they would. */
const LOOK_SECONDS = 0.5;
const MOST_CANDIDATES = 200;
/** Keys are completed part by part, as folders are. */
const PART_END = /[:/.]/;

/** What the lines after the first one are; the completion scripts know these names. */
interface Answer {
  readonly kind: "words" | "parts" | "files";
  readonly candidates: readonly string[];
}

export async function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const breaks = options.bashBreaks as string | undefined;
  const line = breaks === undefined ? undefined : readBashLine(args[0] ?? "", breaks);
  const place = completionPosition(line === undefined ? args : line.words.slice(1));
  const { kind, candidates } = await answerTo(context, place);
  const whole = candidates.map((candidate) => place.lead + candidate);
  const typed = line === undefined ? whole : whole.map((each) => bashCandidate(each, line));
  await context.out.lines([kind, ...typed.filter((each) => each !== undefined)]);
  return EXIT.ok;
}

async function answerTo(context: CommandContext, place: CompletionPosition): Promise<Answer> {
  const { completes, word } = place;
  if (completes === "files") return { kind: "files", candidates: [] };
  if (typeof completes === "object") {
    return { kind: "words", candidates: completes.filter((each) => each.startsWith(word)) };
  }
  const names = await namesInStore(context, place, completes).catch(() => new Set<string>());
  const candidates = [...names].sort().slice(0, MOST_CANDIDATES);
  const goesOn = completes === "keys" && candidates.some((each) => PART_END.test(each.at(-1) ?? ""));
  return { kind: goesOn ? "parts" : "words", candidates };
}

async function namesInStore(
  context: CommandContext,
  place: CompletionPosition,
  what: "keys" | "tags",
): Promise<ReadonlySet<string>> {
  // Only now: most words need no store.
  const { openSession } = await import("../session.ts");
  const { scanEntries } = await import("../entries/entry-scan.ts");
  const over = new AbortController();
  const flags = flagsOf(place);
  const timer = systemClock.after(flags.timeout * 1_000, () => over.abort());
  timer.hold?.(true);
  const session = openSession({ ...context, flags });
  const found = new Set<string>();
  try {
    for await (const batch of scanEntries(session, {}, AbortSignal.any([over.signal, context.stop]))) {
      for (const { key, tags } of batch) {
        for (const name of what === "keys" ? [key] : tags) {
          // What a terminal would obey, such as the end of a line, no shell shows as it is.
          if (!name.startsWith(place.word) || escapeControls(name) !== name) continue;
          found.add(what === "keys" ? nextPart(name, place.word) : name);
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
    timeout: parseDuration(last("--timeout") ?? "") ?? LOOK_SECONDS,
    color: false,
  };
}

/** The key up to the next separator behind what is typed: `user:1:name` is `user:` for `us`. */
function nextPart(key: string, typed: string): string {
  const rest = key.slice(typed.length);
  const end = rest.search(PART_END);
  return end < 0 ? key : key.slice(0, typed.length + end + 1);
}
