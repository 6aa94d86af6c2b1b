// Says in words what is concluded from the text of a statement, and by which of its words.
import { offences, type Statement } from "./analysis.ts";
import { settled } from "./settled-statement.ts";
import { type SqlDialect, statementsOf, type Token, tokensOf } from "./sql-tokens.ts";
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
  const statements = statementsIn(text, dialect).map((statement) => settled(statement));
  const tokens = tokensOf(text, dialect);
  const tables = [...new Set(statements.flatMap((each) => ("tables" in each ? each.tables : [])))];
  const anything = statements.some((each) => each.kind === "write" && each.effects.anything);
  const hasWrite = statements.some(({ kind }) => kind === "write");
  const isRead = statements.length === 1 && statements[0]?.kind === "read";
  return {
    kind: isRead ? "read" : hasWrite ? "write" : "other",
    tables,
    anything,
    reason: isRead ? undefined : reasonOf(statements, tokens, dialect),
  };
}

function reasonOf(
  statements: readonly Statement[],
  tokens: readonly Token[] | undefined,
  dialect: SqlDialect,
): string {
  if (tokens === undefined) return "its text is ambiguous, too long or not understood";
  const [first] = statements;
  const word = tokens[0]?.text.toUpperCase() ?? "";
  if (first === undefined) return "it is empty";
  if (statements.length > 1) return `it has ${statementsOf(tokens).length} statements`;
  const [offence] = offences(tokens, dialect);
  if (first.kind === "write") {
    const isCalled = word !== "CALL" && first.effects.anything && offence?.startsWith("it calls") === true;
    return isCalled ? `${offence}, which may write anything` : `it begins with ${word}`;
  }
  if (first.kind !== "harmless") return `it is part of a transaction (${word})`;
  if (offence !== undefined) return offence;
  return word === "SELECT" || word === "WITH"
    ? "it reads no table that is certain"
    : `it begins with ${word}`;
}
