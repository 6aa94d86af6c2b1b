// Escapes untrusted text so that it cannot move the cursor, change colours or reverse the text direction.

import { UNSAFE } from "../../core/debug.ts";

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeOne(character: string): string {
  const code = character.charCodeAt(0);
  if (SHORT[character] !== undefined) return SHORT[character];
  return code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");

/** Always a single line. */
export const escapeControls = (text: string): string => text.replace(UNSAFE, escapeOne);

/** Like `escapeControls`, but keeps line breaks and tabs. */
export const visibleLines = (text: string): string =>
  text.replace(UNSAFE, (character) =>
    character === "\n" || character === "\t" ? character : escapeOne(character),
  );

/** Whether printing it unescaped would affect a terminal. */
export const isUnsafe = (text: string): boolean => visibleLines(text) !== text;

/** JSON on one line, or indented. Characters unsafe for a terminal are escaped the JSON way. */
export function jsonText(value: unknown, indent?: number): string {
  return (JSON.stringify(value, undefined, indent) ?? "null").replace(UNSAFE, (character) =>
    character === "\n" ? character : `\\u${hex(character.charCodeAt(0), 4)}`,
  );
}
