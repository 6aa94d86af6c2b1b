// `DEBUG=xcache:db` writes a line about each statement to stderr.
import type { SessionScope, SqlDialectName } from "../../core/db-session.ts";

/** `situation`: what keeps statements from the cache at the moment, whatever they are. */
export type Debug = (text: string | undefined, dialect: SqlDialectName, situation?: string) => void;

/** As the package `debug` reads it: names with wildcards, separated by commas. */
function isEnabled(names = process.env.DEBUG ?? ""): boolean {
  return names.split(/[\s,]+/).some((name) => ["xcache:db", "xcache:*", "xcache*", "*"].includes(name));
}

/** undefined: nobody wants to know. */
export function debugOf(scope: SessionScope): Debug | undefined {
  if (!isEnabled()) return undefined;
  return (text, dialect, situation) => {
    if (text !== undefined) write(scope, text, dialect, situation).catch(() => {});
  };
}

async function write(
  scope: SessionScope,
  text: string,
  dialect: SqlDialectName,
  situation: string | undefined,
): Promise<void> {
  const { explainStatement, explanationLine } = await import("./explanation.ts");
  process.stderr.write(`${explanationLine(text, explainStatement(scope, dialect, text), situation)}\n`);
}
