// Formats counts, bytes, percentages, rates and sparklines; the same in every locale.

export const countText = (count: number): string =>
  String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** `1 key`, `2 keys`; `entries` for `entry`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function bytesText(bytes: number): string {
  let [amount, unit] = [bytes, 0];
  while (amount >= 1_024 && unit < UNITS.length - 1) {
    amount /= 1_024;
    unit++;
  }
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[unit]}`;
}

export const percentText = (share: number): string => `${(share * 100).toFixed(1)} %`;

export function rateText(perSecond: number): string {
  if (perSecond === 0) return "0";
  return perSecond < 10 ? perSecond.toFixed(2) : countText(perSecond);
}

const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * The last `width` figures as bars from `least` (default 0) to `most` (default: the largest figure). An unknown figure is
 * a blank.
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
