// A curve of figures in one line of text.

const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * The last `width` figures, each as a bar from 0, or from `least`, to `most` (the greatest of them where it is not said).
 * A figure that is not known is a blank.
 */
export function sparkline(
  figures: readonly (number | undefined)[],
  width: number,
  { least = 0, most }: { readonly least?: number; readonly most?: number } = {},
): string {
  const shown = figures.slice(-width);
  const top = most ?? Math.max(least, ...shown.filter((figure) => figure !== undefined));
  return shown
    .map((figure) => {
      if (figure === undefined) return " ";
      const share = top > least ? (figure - least) / (top - least) : 0;
      const bar = Math.round(Math.min(1, Math.max(0, share)) * (BARS.length - 1));
      return BARS[bar];
    })
    .join("");
}
