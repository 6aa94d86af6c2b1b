// xcache complete: answers the shell's question what can stand at the cursor. Never fails, never takes long.
import { systemClock } from "../../core/clock.ts";
import type { CommandInput } from "../command-spec.ts";
import { type CompletionPlace, completionPlace } from "../completion-place.ts";
import type { CommandContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { visible } from "../visible-text.ts";

/** People wait for it with a finger on the key. */
const LOOK_MS = 500;
const MOST_CANDIDATES = 200;
/** Keys are completed part by part, as folders are. */
const PART_END = /[:/.]/;

export async function run(context: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  const { out } = context;
  const place = completionPlace(args);
  const { completes, word } = place;
  if (completes === "files") await out.lines([":files"]);
  else if (typeof completes === "object") await out.lines(completes.filter((each) => each.startsWith(word)));
  else await out.lines(await fromStore(context, place, completes).catch(() => []));
  return EXIT.ok;
}

async function fromStore(
  context: CommandContext,
  place: CompletionPlace,
  what: "keys" | "tags",
): Promise<readonly string[]> {
  // Only now: most words need no store.
  const { openSession } = await import("../session.ts");
  const { scanEntries } = await import("../entry-scan.ts");
  const over = new AbortController();
  systemClock.after(LOOK_MS, () => over.abort()).hold?.(true);
  const session = openSession({ ...context, flags: flagsOf(place) });
  const found = new Set<string>();
  try {
    for await (const batch of scanEntries(session, {}, AbortSignal.any([over.signal, context.stop]))) {
      for (const { key, tags } of batch) {
        for (const name of what === "keys" ? [key] : tags) {
          const candidate = what === "keys" ? nextPart(name, place.word) : name;
          // What would have to be quoted is left to whoever types it.
          if (name.startsWith(place.word) && visible(name) === name && !/\s/.test(name)) found.add(candidate);
        }
      }
      if (found.size >= MOST_CANDIDATES) break;
    }
  } finally {
    await session.cache.disconnect().catch(() => {});
  }
  return [...found].sort().slice(0, MOST_CANDIDATES);
}

function flagsOf({ flags }: CompletionPlace): CommandContext["flags"] {
  const value = (name: string): string | undefined => flags.get(name);
  const [kvUrl, config, prefix] = [value("--kv-url"), value("--config"), value("--prefix")];
  return {
    ...(kvUrl === undefined ? {} : { kvUrl }),
    ...(config === undefined ? {} : { config }),
    ...(prefix === undefined ? {} : { prefix }),
    timeout: LOOK_MS / 1_000,
    color: false,
  };
}

/** The key up to the next separator behind what is typed: `user:1:name` is `user:` for `us`. */
function nextPart(key: string, typed: string): string {
  const rest = key.slice(typed.length);
  const end = rest.search(PART_END);
  return end < 0 ? key : key.slice(0, typed.length + end + 1);
}
