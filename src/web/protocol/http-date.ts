// HTTP dates (RFC 9110, 5.6.7): the three formats a recipient must accept and no others. `new Date(text)` accepts far more.

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = "mon|tue|wed|thu|fri|sat|sun";
const LONG_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday";
const MONTH = MONTHS.join("|");
const TIME = "(\\d\\d):(\\d\\d):(\\d\\d)";

const FIXDATE = new RegExp(`^(?:${DAYS}), (\\d\\d) (${MONTH}) (\\d{4}) ${TIME} gmt$`, "i");
const RFC850 = new RegExp(`^(?:${LONG_DAYS}), (\\d\\d)-(${MONTH})-(\\d\\d) ${TIME} gmt$`, "i");
const ASCTIME = new RegExp(`^(?:${DAYS}) (${MONTH}) ([ \\d]\\d) ${TIME} (\\d{4})$`, "i");

const LONGEST_DATE = 40;

/** Milliseconds since the epoch, or undefined if the text is not an HTTP date. `now` resolves two-digit years. */
export function parseHttpDate(text: string, now: number): number | undefined {
  if (text.length > LONGEST_DATE) return undefined;
  const fixdate = FIXDATE.exec(text);
  if (fixdate !== null) {
    const [, day, month, year, ...time] = fixdate;
    return timeOf(Number(year), month!, day!, time);
  }
  const rfc850 = RFC850.exec(text);
  if (rfc850 !== null) {
    const [, day, month, year, ...time] = rfc850;
    return timeOf(fullYear(Number(year), now), month!, day!, time);
  }
  const asctime = ASCTIME.exec(text);
  if (asctime === null) return undefined;
  const [, month, day, hour, minute, second, year] = asctime;
  return timeOf(Number(year), month!, day!, [hour!, minute!, second!]);
}

/** A year more than 50 years in the future means the past century (RFC 9110, 5.6.7). */
function fullYear(twoDigits: number, now: number): number {
  const present = new Date(now).getUTCFullYear();
  const year = present - (present % 100) + twoDigits;
  return year > present + 50 ? year - 100 : year;
}

function timeOf(year: number, month: string, day: string, time: readonly string[]): number | undefined {
  const [hour, minute, second] = time.map(Number) as [number, number, number];
  const date = Number(day);
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const ms = Date.UTC(year, MONTHS.indexOf(month.toLowerCase()), date, hour, minute, second);
  return new Date(ms).getUTCDate() === date || second === 60 ? ms : undefined;
}

export function formatHttpDate(ms: number): string {
  return new Date(ms).toUTCString();
}
