// What would be done with a statement and why, as far as its text and the names of the tables tell.
import type { SessionScope, SqlDialectName } from "../../core/db-session.ts";
import { explainText } from "../sql/explain.ts";
import { CachedTables } from "./cached-tables.ts";
import { Writes } from "./transaction.ts";

/**
 * What a session does with a statement. Views, functions of your own, settings and open transactions are looked at when it
 * runs, and may keep it from the cache still.
 */
export interface Explanation {
  readonly isCached: boolean;
  readonly isWrite: boolean;
  /** Why. */
  readonly reason: string;
  /** The tables that it names. */
  readonly tables: readonly string[];
  /** Those of its entry if it is cached, those that it invalidates if it is a write. */
  readonly tags: readonly string[];
}

export function explainStatement(scope: SessionScope, dialect: SqlDialectName, text: string): Explanation {
  const { kind, tables, anything, reason } = explainText(text, dialect);
  const cached = new CachedTables(scope);
  if (kind === "write") {
    const which = anything ? "of every table in tableName" : `of ${tables.join(", ")}`;
    const tags = cached.tagsOf(new Writes(tables, anything));
    return { isCached: false, isWrite: true, reason: `taken for a write ${which}: ${reason}`, tables, tags };
  }
  const other = tables.filter((table) => !cached.include([table]));
  const why = kind === "read" && other.length > 0 ? `tableName does not name ${other.join(", ")}` : reason;
  if (why !== undefined) return { isCached: false, isWrite: false, reason: why, tables, tags: [] };
  const { tags } = cached.optionsFor(tables);
  return { isCached: true, isWrite: false, reason: "it only reads tables in tableName", tables, tags };
}

const LONGEST_TEXT = 200;

/** Without literals: they may be secrets, and mysql2 writes values into the text. */
function shortText(text: string): string {
  const start = text.slice(0, LONGEST_TEXT * 10);
  const masked = start.replace(/'(?:[^'\\]|\\.|'')*(?:'|$)/gs, "'...'");
  return masked.replace(/\s+/g, " ").trim().slice(0, LONGEST_TEXT);
}

/** One line for a log. */
export function explanationLine(
  text: string,
  explanation: Explanation,
  situation: string | undefined,
): string {
  const { isCached, isWrite, reason, tables, tags } = explanation;
  const verdict = isWrite ? "write" : isCached && situation === undefined ? "cached" : "not cached";
  const because = isCached && situation !== undefined ? situation : reason;
  const short = shortText(text);
  const tagged = isCached && situation !== undefined ? [] : tags;
  return `${verdict}: ${because}; tables: ${tables.join(", ") || "none"}; tags: ${tagged.join(", ") || "none"}; ${short}`;
}
