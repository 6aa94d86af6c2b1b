// Small parts that several screens are made of.
import { html } from "htm/preact";
import { percent } from "./format.mjs";

const PATHS = {
  overview: "M3 13h4l3-8 4 14 3-6h4",
  keys: "M4 6h16|M4 12h16|M4 18h10",
  tags: "M3 12V4h8l10 10-8 8z|M7.5 8.5h.01",
  functions: "M8 4c-3 0-2 8-5 8 3 0 2 8 5 8|M16 4c3 0 2 8 5 8-3 0-2 8-5 8",
  health: "M12 21s-8-5-8-11a4.5 4.5 0 0 1 8-2.8A4.5 4.5 0 0 1 20 10c0 6-8 11-8 11z",
  alerts: "M6 10a6 6 0 1 1 12 0c0 5 2 6 2 6H4s2-1 2-6|M10 20h4",
  settings: "M4 7h10|M18 7h2|M4 17h2|M10 17h10|M16 5v4|M8 15v4",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14z|M20 20l-4-4",
  theme: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8z|M12 2v2|M12 20v2|M2 12h2|M20 12h2",
  more: "M5 12h.01|M12 12h.01|M19 12h.01",
};

export const Icon = ({ name }) => html`<svg class="ic" viewBox="0 0 24 24" aria-hidden="true">
  ${PATHS[name].split("|").map((d) => html`<path d=${d} />`)}
</svg>`;

export const Logo = () => html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
  <rect width="32" height="32" rx="8" /><path d="M9 9l7 7-7 7" /><path class="half" d="M23 9l-7 7 7 7" />
</svg>`;

export const Card = ({ title, note, side, children, kind = "" }) => html`<section class=${`card ${kind}`}>
  ${title && html`<div class="ch"><h2>${title}</h2>${note && html`<small>${note}</small>`}<span class="grow" />${side}</div>`}
  ${children}
</section>`;

/** `heads`: a leading `>` aligns a column to the right. */
export const Table = ({
  heads,
  label,
  children,
}) => html`<div class="wrap" tabindex="0" role="region" aria-label=${label}>
  <table>
    <thead><tr>${heads.map((head) => html`<th scope="col" class=${head.startsWith(">") ? "num" : ""}>${head.replace(">", "")}</th>`)}</tr></thead>
    <tbody>${children}</tbody>
  </table>
</div>`;

export const Bar = ({ share, tone }) =>
  html`<span class="bar"><i class=${`b-${tone}`} style=${{ width: `${Math.min(100, share * 100)}%` }} /></span>`;

export const Share = ({ share, tone }) => html`<span class="barrow">
  <${Bar} share=${share} tone=${tone ?? (share < 0.5 ? "red" : share < 0.8 ? "amber" : "acc")} /><b>${percent(share)}</b>
</span>`;

export const Pill = ({ tone = "", children }) => html`<span class=${`pill ${tone}`}>${children}</span>`;

export const Head = ({ title, note, children }) => html`<div class="head">
  <div><h1>${title}</h1><p>${note}</p></div><span class="grow" />${children}
</div>`;

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export function Spark({ values, tone = "acc" }) {
  if (values.length < 2) return html`<svg class="spark" viewBox="0 0 100 28" aria-hidden="true" />`;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const y = (value) => (25 - ((value - low) / (high - low || 1)) * 21).toFixed(1);
  const points = values
    .map((value, at) => `${((at / (values.length - 1)) * 100).toFixed(1)},${y(value)}`)
    .join(" ");
  return html`<svg class=${`spark c-${tone}`} viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
    <polygon points=${`0,28 ${points} 100,28`} /><polyline points=${points} />
  </svg>`;
}

export const breakerTone = (state) => (state === "closed" ? "ok" : state === "open" ? "bad" : "w");
