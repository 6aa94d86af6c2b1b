// Decides what the functions that a statement calls add to it: by the database's catalogue, else by the lists of known names.
import { type Call, callKind } from "./sql-functions.ts";
import { type Effects, NO_EFFECTS, type Statement } from "./statement.ts";

// With these it is all that tracking a session needs, loaded as one with the first session.
export { postgresParser } from "./postgres-parser.ts";
export { mayDenoteNow } from "./sql-functions.ts";
export { statementsIn } from "./statement.ts";

/**
 * What the catalogue says of all functions of a name. `immutable`: each is declared to depend on its arguments alone.
 * `stable`, `built-in`: the others belong to the database or to an extension, and are all stable, or not. `own`: the
 * application has made one. `absent`: there is none, so the name is a keyword.
 */
export type Trust = "immutable" | "stable" | "built-in" | "own" | "absent";

type Verdict = "cacheable" | "harmless" | "anything";

/** Without a catalogue. */
const BY_NAME: Readonly<Record<Call["kind"], Verdict>> = {
  plain: "cacheable",
  volatile: "harmless",
  unknown: "anything",
};

/** For a function that no list has. */
const UNLISTED: Readonly<Record<Trust, Verdict>> = {
  immutable: "cacheable",
  stable: "harmless",
  "built-in": "anything",
  own: "anything",
  absent: "anything",
};

function verdictOf({ kind }: Call, trust: Trust | undefined): Verdict {
  if (trust === undefined) return BY_NAME[kind];
  if (kind === "unknown") return UNLISTED[trust];
  return trust === "own" ? "anything" : BY_NAME[kind];
}

/** `trustOf`: undefined where the catalogue is not known. */
export function settled(
  statement: Statement,
  trustOf: (name: string) => Trust | undefined = () => undefined,
): Statement {
  const calls = callsOf(statement);
  if (calls.length === 0) return statement;
  const verdicts = calls.map((call) => verdictOf(call, trustOf(call.name)));
  if (verdicts.includes("anything")) return writingAnything(statement);
  if (statement.kind === "read")
    return verdicts.includes("harmless")
      ? { kind: "harmless", effects: NO_EFFECTS }
      : { kind: "read", tables: statement.tables };
  const { calls: _, ...rest } = statement as Statement & { readonly calls?: unknown };
  return rest as Statement;
}

/** Functions behind operators and casts of dates and times, which depend on settings that are part of every key. */
const OF_TIMES = /^(date|time|timestamp|timestamptz|timetz|interval)(_|$)/;

/** Whether a stored query that calls this function of PostgreSQL may be cached. */
export function isCacheableCall(name: string, trust: Trust): boolean {
  if (trust === "immutable") return true;
  const kind = callKind(name, undefined, "postgres");
  return trust !== "own" && (kind === "plain" || (trust === "stable" && OF_TIMES.test(name)));
}

export function callsOf(statement: Statement): readonly Call[] {
  return ("calls" in statement ? statement.calls : undefined) ?? [];
}

/** A call of an unknown function may do anything. */
function writingAnything(statement: Statement): Statement {
  const effects: Effects = "effects" in statement ? statement.effects : NO_EFFECTS;
  return {
    kind: "write",
    tables: statement.kind === "write" ? statement.tables : [],
    effects: { anything: true, locks: effects.locks ?? "transaction", settings: true },
  };
}
