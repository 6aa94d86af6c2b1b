// Parses and formats durations such as 90, 1.5s, 5m, 1h and 7d.
import { toSeconds } from "../../core/duration.ts";

/** Seconds; undefined if invalid. A plain number is seconds; `never` and `Infinity` are Infinity. */
export function parseDuration(text: string): number | undefined {
  if (text === "never" || text === "Infinity") return Number.POSITIVE_INFINITY;
  const trimmed = text.trim();
  const seconds = toSeconds(/^\d+(\.\d+)?$/.test(trimmed) ? `${trimmed}s` : trimmed);
  return typeof seconds === "number" && seconds > 0 ? seconds : undefined;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** The two largest units: `2h 5m`; `never` for Infinity. */
export function durationText(seconds: number | undefined): string {
  if (seconds === undefined) return "-";
  if (seconds === Number.POSITIVE_INFINITY) return "never";
  if (seconds < 1) return `${Math.round(seconds * 1_000)}ms`;
  let left = Math.floor(seconds);
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    if (count === 0 && parts.length === 0) continue;
    if (count > 0) parts.push(`${count}${unit}`);
    left -= count * size;
    if (parts.length === 2 || count === 0) break;
  }
  return parts.join(" ");
}

export function latencyText(seconds: number): string {
  const ms = seconds * 1_000;
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  return ms < 100 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}
