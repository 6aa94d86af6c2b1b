// `DEBUG=xcache:db` writes a line about each statement to stderr.
import type { SessionScope, SqlDialectName } from "../../core/db-session.ts";
import { type DebugLog, debugLog } from "../../core/debug.ts";

/** `situation`: what keeps statements from the cache at the moment, whatever they are. */
export type Debug = (text: string | undefined, dialect: SqlDialectName, situation?: string) => void;

/** undefined: nobody wants to know. */
export function debugOf(scope: SessionScope): Debug | undefined {
  const log = debugLog("db");
  if (log === undefined) return undefined;
  return (text, dialect, situation) => {
    if (text !== undefined) write(log, scope, text, dialect, situation).catch(() => {});
  };
}

async function write(
  log: DebugLog,
  scope: SessionScope,
  text: string,
  dialect: SqlDialectName,
  situation: string | undefined,
): Promise<void> {
  const { explainStatement, explanationLine } = await import("./explanation.ts");
  log(explanationLine(text, explainStatement(scope, dialect, text), situation));
}
