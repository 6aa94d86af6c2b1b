// The page: navigation, search, the state of the connection, and the screen that is chosen.
import { signal } from "@preact/signals";
import { html } from "htm/preact";
import { render } from "preact";
import { count, shown } from "./format.mjs";
import { Keys } from "./keys.mjs";
import { Alerts, Functions, Health, Settings } from "./others.mjs";
import { Overview } from "./overview.mjs";
import { Head, Icon, Logo, Pill } from "./parts.mjs";
import { failure, linkTo, now, overview, route, SCREENS, switchTheme, updatedAt, watch } from "./state.mjs";
import { Tags } from "./tags.mjs";

const VIEWS = {
  overview: Overview,
  keys: Keys,
  tags: Tags,
  functions: Functions,
  health: Health,
  alerts: Alerts,
  settings: Settings,
  more: More,
};
const titleOf = (screen) => screen[0].toUpperCase() + screen.slice(1);
const firing = () =>
  overview.value?.processes.flatMap(({ alerts }) => alerts).filter(({ status }) => status === "firing")
    .length ?? 0;

const badge = (screen) => {
  const data = overview.value;
  if (data === undefined) return null;
  if (screen === "keys") return html`<span class="n">${count(data.totals.totalKeys)}</span>`;
  if (screen === "functions") return html`<span class="n">${count(data.functions.length)}</span>`;
  return screen === "alerts" && firing() > 0 ? html`<span class="n hot">${firing()}</span>` : null;
};

const Links = ({ screens }) =>
  screens.map(
    (screen) =>
      html`<a href=${linkTo(screen)} aria-current=${route.value.screen === screen ? "page" : undefined}><${Icon} name=${screen} /><span>${titleOf(screen)}</span>${badge(screen)}</a>`,
  );

function More() {
  return html`<${Head} title="More" note="" /><section class="card"><nav class="nav" aria-label="More pages"><${Links} screens=${["functions", "alerts", "settings"]} /></nav></section>`;
}

const wanted = signal("");

const Search = () => html`<form class="find" role="search" onSubmit=${(event) => {
  event.preventDefault();
  location.hash = placeOf(wanted.value);
}}>
  <${Icon} name="search" /><input id="find" type="search" aria-label="Find a key, tag or function" placeholder="Find a key, tag or function" value=${wanted.value} onInput=${(
    event,
  ) => {
    wanted.value = event.target.value;
  }} /><kbd aria-hidden="true">/</kbd>
</form>`;

/** A function or tag of that name, else the keys that begin so. */
function placeOf(text) {
  if (overview.value?.functions.some(({ name }) => name === text)) return linkTo("functions", text);
  if (overview.value?.invalidations.some(({ tag }) => tag === text)) return linkTo("tags", text);
  return linkTo("keys", text);
}

const Live = () => {
  const seconds = Math.max(0, Math.round((now.value - updatedAt.value) / 1_000));
  const text =
    failure.value === undefined
      ? overview.value === undefined
        ? "connecting"
        : `live, ${seconds} s ago`
      : "not current";
  return html`<span class="live"><i class=${`dot ${failure.value === undefined ? "" : "r"}`} /><span>${text}</span></span>`;
};

function Page() {
  const data = overview.value;
  const View = VIEWS[route.value.screen];
  const access =
    data &&
    html`<${Pill} tone=${data.allowed.writes ? "bad" : "w"}>${data.allowed.writes ? "Writes allowed" : "Read-only"}<//>`;
  return html`
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    }}>Skip to content</a>
    <div class="app">
      <aside class="side" aria-label="Navigation">
        <div class="brand"><${Logo} />xcache</div>
        <div class="scope"><b>${data ? shown(data.prefix, 40) : "…"}</b><small>prefix</small></div>
        <nav class="nav" aria-label="Pages"><${Links} screens=${SCREENS} /></nav>
        ${data && html`<div class="foot">${access}<code>${shown(data.address, 120)}</code><span>xcache ${data.version}</span></div>`}
      </aside>
      <div class="main">
        <header class="top"><b class="only-s">xcache</b><${Search} /><span class="grow" /><${Live} /><span class="only-s">${access}</span>
          <button class="icon" aria-label="Switch between light and dark" onClick=${switchTheme}><${Icon} name="theme" /></button></header>
        <main class="page" id="main" tabindex="-1">
          ${failure.value !== undefined && html`<p class="note bad" role="alert">The figures are not current: ${shown(failure.value)}. Trying again.</p>`}
          ${data?.note && html`<p class="note">${data.note}</p>`}
          ${data ? html`<${View} />` : html`<h1>xcache</h1><p>Reading the figures …</p>`}
        </main>
      </div>
    </div>
    <nav class="bottom" aria-label="Pages, short"><${Links} screens=${["overview", "keys", "tags", "health", "more"]} /></nav>`;
}

addEventListener("keydown", (event) => {
  if (
    event.key !== "/" ||
    event.ctrlKey ||
    event.metaKey ||
    /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
  )
    return;
  event.preventDefault();
  document.getElementById("find")?.focus();
});

render(html`<${Page} />`, document.body);
void watch();
