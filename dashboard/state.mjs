// What the whole page shares: where it is, what it knows of the cache, and whether that is current.
import { signal } from "@preact/signals";
import { lines } from "./api.mjs";

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

setInterval(() => {
  now.value = Date.now();
}, 1_000);

let reading;

/** Reads the live figures from now on; a stream that ends is opened again. */
export async function watch() {
  reading?.abort();
  const own = new AbortController();
  reading = own;
  while (!own.signal.aborted) {
    try {
      for await (const line of lines("live", { range: range.value }, own.signal)) {
        failure.value = line.failed;
        if (line.overview === undefined) continue;
        overview.value = line.overview;
        updatedAt.value = Date.now();
      }
      failure.value ??= "the server ended the connection";
    } catch (error) {
      if (own.signal.aborted) return;
      failure.value =
        error.status === 401 ? "not allowed: open the address with its token again" : error.message;
    }
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  }
}

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
