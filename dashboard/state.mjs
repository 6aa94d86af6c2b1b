// What the whole page shares: where it is, what it knows of the cache, and whether that is current.
import { computed, signal } from "@preact/signals";
import { follow } from "./live.mjs";

export const SCREENS = ["overview", "keys", "tags", "functions", "health", "alerts", "settings"];

/** The screen, and what it is about. */
const readRoute = () => {
  const [screen, about = ""] = location.hash.slice(1).split("/", 2);
  return { screen: [...SCREENS, "more"].includes(screen) ? screen : "overview", about: decode(about) };
};
const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
};

export const route = signal(readRoute());
addEventListener("hashchange", () => {
  route.value = readRoute();
});
export const linkTo = (screen, about) =>
  `#${screen}${about === undefined ? "" : `/${encodeURIComponent(about.toWellFormed?.() ?? about)}`}`;

export const overview = signal(undefined);
export const updatedAt = signal(0);
/** Why the figures are not current; undefined: they are. */
export const failure = signal(undefined);
export const range = signal(3_600);
export const now = signal(Date.now());
/** By the store's clock: the browser's own may be wrong. Only how much of its time has passed since an update is used. */
export const storeNow = computed(() => (overview.value?.now ?? 0) + Math.max(0, now.value - updatedAt.value));

/** For long lists, which are not drawn again every second. */
export const slowNow = computed(() => Math.floor(storeNow.value / 10_000) * 10_000);

setInterval(() => {
  now.value = Date.now();
}, 1_000);

let reading;

/** Reads the live figures from now on. */
export function watch() {
  reading?.abort();
  reading = new AbortController();
  return follow(() => ({ range: range.value }), reading.signal, take);
}

function take(line) {
  if (line.overview !== undefined) {
    overview.value = line.overview;
    updatedAt.value = now.value = Date.now();
  }
  failure.value = line.waiting === undefined ? line.failed : late(line.waiting);
}

/** A moment is usual on a busy store. */
const late = (seconds) => (seconds < 5 ? failure.peek() : `the store has not answered for ${seconds} s`);

const theme = signal(
  sessionStorage.getItem("xcache-theme") ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"),
);
export function switchTheme() {
  theme.value = theme.value === "dark" ? "light" : "dark";
  sessionStorage.setItem("xcache-theme", theme.value);
}
theme.subscribe((value) => {
  document.documentElement.dataset.theme = value;
});
