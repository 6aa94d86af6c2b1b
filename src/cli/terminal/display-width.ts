// Text measured in terminal columns: width, padding, truncation and tables.

/** East Asian wide and fullwidth characters, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /\p{Mn}|\p{Me}|\u200d|[\ufe00-\ufe0f]/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOUR = /\u001b\[[\d;]*m/g;
const PLAIN = /^[\u0020-\u007e]*$/;

function widthOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** In columns; colour codes take none. */
export function displayWidth(text: string): number {
  const bare = text.replace(COLOUR, "");
  if (PLAIN.test(bare)) return bare.length;
  let width = 0;
  for (const character of bare) width += widthOf(character);
  return width;
}

export const padEnd = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - displayWidth(text)));

export const padStart = (text: string, width: number): string =>
  " ".repeat(Math.max(0, width - displayWidth(text))) + text;

/** At most `width` columns, ending in `…` if truncated. Colours are kept and reset. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let shown = "";
  let used = 0;
  let hasColour = false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
  for (const part of text.split(/(\u001b\[[\d;]*m)/)) {
    if (part.startsWith("\u001b")) {
      shown += part;
      hasColour = true;
      continue;
    }
    for (const character of part) {
      const next = widthOf(character);
      if (used + next > width - 1) return `${shown}…${hasColour ? "\u001b[0m" : ""}`;
      shown += character;
      used += next;
    }
  }
  return shown;
}

const BETWEEN = "  ";

/** Columns as wide as their widest cell, without trailing spaces. `right`: the right-aligned columns. */
export function tableLines(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, displayWidth(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, at) => (right.includes(at) ? padStart(cell, widths[at]!) : padEnd(cell, widths[at]!)))
      .join(BETWEEN)
      .trimEnd(),
  );
}
