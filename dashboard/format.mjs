// Figures and untrusted text as they are shown.
import { html } from "htm/preact";

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const count = (value) => number.format(value);
export const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)} %`;
export const ms = (seconds) => {
  const value = seconds * 1_000;
  return value >= 100 ? count(value) : value.toFixed(value >= 10 ? 1 : 2);
};

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [size, at] = [value, 0];
  while (size >= 1024 && at < units.length - 1) [size, at] = [size / 1024, at + 1];
  return `${at === 0 || size >= 100 ? count(size) : size.toFixed(1)} ${units[at]}`;
}

/** null: never ends. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "never";
  if (seconds < 1) return `${Math.round(seconds * 1_000)} ms`;
  const parts = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "m"],
    [1, "s"],
  ];
  const first = parts.findIndex(([size]) => seconds >= size);
  let left = Math.floor(seconds);
  return parts
    .slice(first, first + 2)
    .map(([size, unit]) => {
      const times = Math.floor(left / size);
      left -= times * size;
      return times === 0 ? "" : `${times}${unit}`;
    })
    .filter(Boolean)
    .join(" ");
}

const two = (value) => String(value).padStart(2, "0");
export const clock = (at) => {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
};
export const moment = (at) => `${clock(at)}:${two(new Date(at).getSeconds())}`;
export const ago = (at, now) => {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1_000);
  return seconds < 1 ? "now" : `${duration(Math.round(seconds))} ago`;
};

// Control characters, and those that change the direction of text or are not seen.
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it shows
  /([\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Surrogate})/u;
const LONGEST = 300;

/** Untrusted text on one line: shown, never interpreted. */
export function shown(text, longest = LONGEST) {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return cut
    .split(UNSEEN)
    .map((part, at) => (at % 2 === 0 ? part : html`<span class="esc">${escaped(part)}</span>`));
}

/** The same over several lines. */
export function shownLines(text) {
  return text.split(UNSEEN).map((part, at) => {
    if (at % 2 === 0 || part === "\n" || part === "\t") return part;
    return html`<span class="esc">${escaped(part)}</span>`;
  });
}

function escaped(character) {
  const code = character.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}

const isGlob = (text) => /[*?[]/.test(text);

/** What a text in the search of keys asks for. A glob may be a key as well. */
export const searchFor = (text) => ({ exact: text, [isGlob(text) ? "match" : "prefix"]: text });

/** The text that finds the keys that begin like this. */
export const searchOfPrefix = (prefix) =>
  isGlob(prefix) ? `${prefix.replace(/[*?[\\]/g, "\\$&")}*` : prefix;

/** The command that shows an entry. What follows `--` is no option, whatever it begins with. */
export const getCommand = (key, prefix) => `xcache get --prefix ${shellWord(prefix)} -- ${shellWord(key)}`;

/** The command that invalidates a tag. A list would be split at the commas of a tag. */
export const invalidateCommand = (tag, prefix) =>
  `xcache invalidate --tags ${shellWord(/^\[|,/.test(tag) ? JSON.stringify([tag]) : tag)} --prefix ${shellWord(prefix)}`;

/** A word for a shell: what could mean anything to it is quoted. */
export const shellWord = (text) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
