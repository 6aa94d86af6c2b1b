// xcache invalidate: entries by tag, by pattern or by a list of keys.
import { UnsupportedError } from "../../core/errors.ts";
import { glob } from "../../core/glob/glob.ts";
import { CommandError } from "../command-error.ts";
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { requireSomebody } from "../entries/confirm.ts";
import { countEntries, type EntryFilter } from "../entries/entry-scan.ts";
import { openLines } from "../entries/line-source.ts";
import { type Removal, removeWithCare } from "../entries/removal.ts";
import type { ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";

interface Options {
  readonly tag?: readonly string[];
  readonly pattern?: string;
  readonly keysFrom?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly count: boolean;
}

/** Keys asked for or removed at once. */
const TOGETHER = 500;

export async function run(context: CommandContext, input: CommandInput): Promise<ExitCode> {
  const options = input.options as unknown as Options;
  const { tag, pattern, keysFrom, dryRun = false, yes = false } = options;
  if ([tag, pattern, keysFrom].filter((each) => each !== undefined).length !== 1) {
    throw new CommandError(
      "say what to invalidate: one of --tag, --pattern and --keys-from",
      "See `xcache invalidate --help`; `xcache clear` removes everything.",
    );
  }
  // The standard input cannot be the list and the answer.
  if (keysFrom === "-" && !dryRun && !yes) requireSomebody(false);
  const keys = keysFrom === undefined ? [] : await readKeys(context, keysFrom);
  const work = (session: Session): Promise<ExitCode> => {
    const care = { isDryRun: dryRun, isConfirmed: yes };
    if (tag !== undefined)
      return removeWithCare(context, { ...byTag(context, session, tag, options.count), ...care });
    if (pattern !== undefined)
      return removeWithCare(context, { ...byPattern(context, session, pattern, options.count), ...care });
    return removeWithCare(context, { ...byKeys(context, session, keys), ...care });
  };
  return withSession(context, work, { tellsHowFar: true });
}

type Target = Omit<Removal, "isDryRun" | "isConfirmed">;

function byTag(context: CommandContext, session: Session, tags: readonly string[], counts: boolean): Target {
  const names = tags.map((tag) => `"${escapeControls(tag)}"`).join(", ");
  return {
    what: tags.length === 1 ? `with the tag ${names}` : `with one of the tags ${names}`,
    facts: { tags },
    count: () => count(context, session, { tags }, counts),
    remove: async () => {
      await session.cache.invalidateTags(tags);
      return { entries: undefined };
    },
  };
}

function byPattern(context: CommandContext, session: Session, pattern: string, counts: boolean): Target {
  return {
    what: `whose keys match ${escapeControls(pattern)}`,
    facts: { pattern },
    count: () => {
      requireScan(session);
      return count(context, session, { pattern }, counts);
    },
    // Not by the cache object, which does not tell how far it came when it is stopped.
    remove: async () => ({
      entries: await session.space.invalidateMatching(glob(pattern), context.interrupt.signal),
      isPart: context.interrupt.isRaised,
    }),
  };
}

/** Before it is asked or a dry run says what cannot be done. */
function requireScan({ store: { backend } }: Session): void {
  if (backend.capabilities.scan) return;
  throw new UnsupportedError(`the ${backend.name} store cannot list keys, so none is found by a pattern`, {
    operation: "invalidatePattern",
    hint: "Invalidate by --tag, or name the keys with --keys-from.",
  });
}

function byKeys({ interrupt }: CommandContext, session: Session, keys: readonly string[]): Target {
  return {
    what: "of the list of keys",
    facts: { requested: keys.length },
    count: async () => ({ entries: await countPresent(session, keys, interrupt.signal) }),
    remove: async () => {
      let removed = 0;
      let at = 0;
      for (; at < keys.length && !interrupt.isRaised; at += TOGETHER)
        removed += await session.cache.delete(keys.slice(at, at + TOGETHER));
      return { entries: removed, isPart: at < keys.length };
    },
  };
}

/** A store that cannot list its keys still can invalidate tags. */
async function count(
  { stop }: CommandContext,
  session: Session,
  filter: EntryFilter,
  counts: boolean,
): Promise<{ entries: number | undefined }> {
  if (!counts || !session.store.backend.capabilities.scan) return { entries: undefined };
  return { entries: await countEntries(session, filter, stop) };
}

async function countPresent({ space }: Session, keys: readonly string[], stop: AbortSignal): Promise<number> {
  let present = 0;
  for (let at = 0; at < keys.length && !stop.aborted; at += TOGETHER) {
    const found = await Promise.all(keys.slice(at, at + TOGETHER).map((key) => space.inspect(key)));
    present += found.filter((entry) => entry !== undefined).length;
  }
  return present;
}

/** A line is a key, or an object with a key as `list --json` and `export` print it. */
async function readKeys(context: CommandContext, file: string): Promise<readonly string[]> {
  const keys = new Set<string>();
  for await (const { text } of await openLines(context, file)) keys.add(keyOf(text));
  return [...keys];
}

function keyOf(line: string): string {
  if (!line.startsWith("{")) return line;
  try {
    const { key } = JSON.parse(line) as { key?: unknown };
    return typeof key === "string" ? key : line;
  } catch {
    return line;
  }
}
