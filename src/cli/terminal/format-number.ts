// Counts, bytes, shares and rates as people read them; the same in every locale.

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
