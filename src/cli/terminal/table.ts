// Rows in columns, each as wide as its widest cell.
import { displayWidth, padEnd, padStart } from "./display-width.ts";

const BETWEEN = "  ";

/** Lines without trailing blanks. `right`: the columns whose cells end together instead of beginning together. */
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
