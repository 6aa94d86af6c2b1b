// Says in words what is concluded from the text of a statement, and by which of its words.
import { offenceOf, offences, type Statement } from "./analysis.ts";
import { postgresParser } from "./postgres-parser.ts";
import { callsOf, settled } from "./settled-statement.ts";
import { type SqlDialect, statementsOf, tokensOf } from "./sql-tokens.ts";
import { statementsIn } from "./statement.ts";

/** What a statement is taken for, as far as its text tells. */
export interface TextExplanation {
  /** `read`: it may be cached. `write`: it invalidates. `other`: neither. */
  readonly kind: "read" | "write" | "other";
  readonly tables: readonly string[];
  /** It may write tables that it does not name. */
  readonly anything: boolean;
  /** Why it is not a read that may be cached, or what makes it a write. */
  readonly reason: string | undefined;
}

export function explainText(text: string, dialect: SqlDialect): TextExplanation {
  const found = statementsIn(text, dialect);
  const statements = found.map((statement) => settled(statement));
  const tables = [...new Set(statements.flatMap((each) => ("tables" in each ? each.tables : [])))];
  const anything = statements.some((each) => each.kind === "write" && each.effects.anything);
  const hasWrite = statements.some(({ kind }) => kind === "write");
  const isRead = statements.length === 1 && statements[0]?.kind === "read";
  return {
    kind: isRead ? "read" : hasWrite ? "write" : "other",
    tables,
    anything,
    reason: isRead ? undefined : reasonOf(text, dialect, found),
  };
}

/** The first one behind comments, for texts that only PostgreSQL's parser understands. */
const firstWord = (text: string): string =>
  /\w+/.exec(text.replace(/--.*|\/\*[\s\S]*?\*\//g, " "))?.[0] ?? "";

function reasonOf(text: string, dialect: SqlDialect, statements: readonly Statement[]): string {
  const isParsed = dialect === "postgres" && Array.isArray(postgresParser.parsed(text));
  const tokens = tokensOf(text, dialect);
  if (tokens === undefined && !isParsed) return "its text is ambiguous, too long or not understood";
  const [first] = statements;
  if (first === undefined) return "it is empty";
  if (statements.length > 1) {
    const count = isParsed ? statements.length : statementsOf(tokens ?? []).length;
    return `it has ${count} statements`;
  }
  const word = (tokens?.[0]?.text ?? firstWord(text)).toUpperCase();
  const calls = callsOf(first);
  const reason = "reason" in first ? first.reason : undefined;
  if (settled(first).kind === "write") {
    const unknown = calls.find(({ kind }) => kind === "unknown");
    return unknown ? `${offenceOf(unknown)}, which may write anything` : (reason ?? `it begins with ${word}`);
  }
  if (first.kind !== "harmless" && first.kind !== "read") return `it is part of a transaction (${word})`;
  const [offence] = isParsed
    ? calls.flatMap((call) => offenceOf(call) ?? [])
    : offences(tokens ?? [], dialect);
  const found = reason ?? offence;
  if (found !== undefined) return found;
  return /^(SELECT|WITH|TABLE|VALUES|\()$/.test(word)
    ? "it reads no table that is certain"
    : `it begins with ${word}`;
}
