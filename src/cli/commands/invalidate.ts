// xcache invalidate: removes entries by tag, by pattern or by a list of keys.
import { UnsupportedError } from "../../core/errors.ts";
import { glob } from "../../core/glob/glob.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { requireTerminal } from "../entries/confirm.ts";
import { countEntries, type EntryFilter } from "../entries/entry-scan.ts";
import { openLines } from "../entries/line-source.ts";
import { confirmAndRemove, type Removal } from "../entries/removal.ts";
import { CommandError, type ExitCode } from "../exit-code.ts";
import { type Session, withSession } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";

interface Options {
  readonly tags?: readonly string[];
  readonly pattern?: string;
  readonly keysFrom?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly count: boolean;
}

/** Keys inspected or removed at once. */
const BATCH_SIZE = 500;

export async function run(context: CommandContext, input: CommandInput): Promise<ExitCode> {
  const options = input.options as unknown as Options;
  const { tags, pattern, keysFrom, dryRun = false, yes = false } = options;
  if ([tags, pattern, keysFrom].filter((each) => each !== undefined).length !== 1) {
    throw new CommandError(
      "expected exactly one of --tags, --pattern and --keys-from",
      "See `xcache invalidate --help`; `xcache clear` removes everything.",
    );
  }
  // stdin cannot carry both the keys and the confirmation.
  if (keysFrom === "-" && !dryRun && !yes) requireTerminal(false);
  const keys = keysFrom === undefined ? [] : await readKeys(context, keysFrom);
  const work = (session: Session): Promise<ExitCode> => {
    const safeguards = { isDryRun: dryRun, isConfirmed: yes };
    if (tags !== undefined)
      return confirmAndRemove(context, { ...byTag(context, session, tags, options.count), ...safeguards });
    if (pattern !== undefined)
      return confirmAndRemove(context, {
        ...byPattern(context, session, pattern, options.count),
        ...safeguards,
      });
    return confirmAndRemove(context, { ...byKeys(context, session, keys), ...safeguards });
  };
  return withSession(context, work, { reportsProgress: true });
}

type Target = Omit<Removal, "isDryRun" | "isConfirmed">;

function byTag(
  context: CommandContext,
  session: Session,
  tags: readonly string[],
  countFirst: boolean,
): Target {
  const names = tags.map((tag) => `"${escapeControls(tag)}"`).join(", ");
  return {
    what: tags.length === 1 ? `with the tag ${names}` : `with one of the tags ${names}`,
    facts: { tags },
    count: () => count(context, session, { tags }, countFirst),
    remove: async () => {
      await session.cache.invalidateTags(tags);
      return { entries: undefined };
    },
  };
}

function byPattern(context: CommandContext, session: Session, pattern: string, countFirst: boolean): Target {
  return {
    what: `whose keys match ${escapeControls(pattern)}`,
    facts: { pattern },
    count: () => {
      requireScan(session);
      return count(context, session, { pattern }, countFirst);
    },
    // Not through the cache object, which does not report how far it got when interrupted.
    remove: async () => ({
      entries: await session.namespace.invalidateMatching(glob(pattern), context.interrupt.signal),
      isPartial: context.interrupt.isRaised,
    }),
  };
}

/** Checked before the confirmation, and before a dry run promises the impossible. */
function requireScan({ store: { backend } }: Session): void {
  if (backend.capabilities.scan) return;
  throw new UnsupportedError(`the ${backend.name} store cannot list keys, so it cannot match a pattern`, {
    operation: "invalidatePattern",
    hint: "Invalidate by --tags, or list the keys with --keys-from.",
  });
}

function byKeys({ interrupt }: CommandContext, session: Session, keys: readonly string[]): Target {
  return {
    what: "from the list of keys",
    facts: { requested: keys.length },
    count: async () => ({ entries: await countPresent(session, keys, interrupt.signal) }),
    remove: async () => {
      let removed = 0;
      let at = 0;
      for (; at < keys.length && !interrupt.isRaised; at += BATCH_SIZE)
        removed += await session.cache.delete(keys.slice(at, at + BATCH_SIZE));
      return { entries: removed, isPartial: at < keys.length };
    },
  };
}

/** Undefined entries: the store cannot list keys, but it can still invalidate tags. */
async function count(
  { stop }: CommandContext,
  session: Session,
  filter: EntryFilter,
  countFirst: boolean,
): Promise<{ entries: number | undefined }> {
  if (!countFirst || !session.store.backend.capabilities.scan) return { entries: undefined };
  return { entries: await countEntries(session, filter, stop) };
}

async function countPresent({ cache }: Session, keys: readonly string[], stop: AbortSignal): Promise<number> {
  let present = 0;
  for (let at = 0; at < keys.length && !stop.aborted; at += BATCH_SIZE) {
    const found = await Promise.all(keys.slice(at, at + BATCH_SIZE).map((key) => cache.exists(key)));
    present += found.filter(Boolean).length;
  }
  return present;
}

/** A line is a key, or an object with a `key` as printed by `list --json` and `export`. */
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
