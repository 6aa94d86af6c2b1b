// A minimal terminal emulator: what the screen shows after some output with redrawn lines.

/** Lines without trailing blanks and colours. Throws on an unknown escape sequence. */
export function screenOf(output: string): string[] {
  const lines: string[] = [""];
  let [row, column] = [0, 0];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with one
  const parts = output.matchAll(/\u001b\[(\??[\d;]*)([A-Za-z])|(\r)|(\n)|([^\u001b\r\n]+)/gu);
  for (const [sequence, parameter, letter, isReturn, isLineEnd, text] of parts) {
    if (isReturn !== undefined) column = 0;
    else if (isLineEnd !== undefined) lines[++row] ??= "";
    else if (text !== undefined) {
      lines[row] =
        lines[row]!.padEnd(column).slice(0, column) + text + lines[row]!.slice(column + text.length);
      column += text.length;
    } else if (letter === "A") row -= Number(parameter || 1);
    else if (letter === "K") lines[row] = parameter === "2" ? "" : lines[row]!.slice(0, column);
    else if (letter === "J") {
      lines[row] = lines[row]!.slice(0, column);
      lines.length = row + 1;
    } else if (letter === "G") column = Number(parameter || 1) - 1;
    else if (letter !== "m" && letter !== "h" && letter !== "l")
      throw new Error(`unknown sequence ${JSON.stringify(sequence)}`);
  }
  return lines.map((line) => line.trimEnd());
}
