// Text that is safe to show: nothing in it moves the cursor, changes colours or turns the line around.

/** Control characters, what breaks lines, what changes the direction of writing, and halves of surrogate pairs. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Surrogate}/gu;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeOne(character: string): string {
  const code = character.charCodeAt(0);
  if (SHORT[character] !== undefined) return SHORT[character];
  return code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");

/** On one line, whatever it holds. */
export const escapeControls = (text: string): string => text.replace(UNSAFE, escapeOne);

/** As `visible`, with its own lines and tabs kept. */
export const visibleLines = (text: string): string =>
  text.replace(UNSAFE, (character) =>
    character === "\n" || character === "\t" ? character : escapeOne(character),
  );

/** Whether showing it as it is would do something to a terminal. */
export const isUnsafe = (text: string): boolean => visibleLines(text) !== text;

/** JSON on one line, or indented. What JSON leaves as it is and a terminal would not is escaped as JSON has it. */
export function jsonText(value: unknown, indent?: number): string {
  return (JSON.stringify(value, undefined, indent) ?? "null").replace(UNSAFE, (character) =>
    character === "\n" ? character : `\\u${hex(character.charCodeAt(0), 4)}`,
  );
}
