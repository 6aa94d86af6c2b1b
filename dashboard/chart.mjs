// A chart over time as SVG, with a table of the same figures for those who do not see it.
import { useSignal } from "@preact/signals";
import { html } from "htm/preact";
import { useEffect, useRef } from "preact/hooks";
import { clock } from "./format.mjs";

const HEIGHT = 190;
const EDGE = { left: 52, right: 8, top: 10, bottom: 22 };

/**
 * `series`: { label, tone, values, fill? }; `stacked`: on top of each other. `marks`: { at, label } become lines, `bands`:
 * { from, to } are shaded.
 */
export function Chart({ label, at, series, format, stacked = false, min = 0, marks = [], bands = [] }) {
  const box = useRef(null);
  const width = useSignal(600);
  const hover = useSignal(-1);
  useEffect(() => {
    const resized = new ResizeObserver(([entry]) => {
      width.value = Math.max(200, entry.contentRect.width);
    });
    resized.observe(box.current);
    return () => resized.disconnect();
  }, []);
  const [inner, tall] = [width.value - EDGE.left - EDGE.right, HEIGHT - EDGE.top - EDGE.bottom];
  const [first, last] = [at[0] ?? 0, at.at(-1) ?? 1];
  const lines = stacked ? stackOf(series) : series.map(({ values }) => ({ values }));
  const top = ceiling(Math.max(min + 1e-9, ...lines.flatMap(({ values }) => values.map(Number))), min);
  const x = (time) => EDGE.left + ((time - first) / (last - first || 1)) * inner;
  const y = (value) => EDGE.top + tall - ((Math.max(min, value) - min) / (top - min)) * tall;
  const ticks = [0, 1, 2, 3, 4].map((part) => min + ((top - min) * part) / 4);
  const step = Math.max(1, Math.ceil(at.length / (inner / 80)));
  const move = (event) => {
    const share = (event.offsetX - EDGE.left) / inner;
    hover.value = share < 0 || share > 1 ? -1 : Math.round(share * (at.length - 1));
  };
  const focus = hover.value;
  return html`<div class="plot">
    <div ref=${box} class="canvas" role="img" aria-label=${label} onPointerMove=${move} onPointerLeave=${() => {
      hover.value = -1;
    }}>
      <svg viewBox=${`0 0 ${width.value} ${HEIGHT}`} width=${width.value} height=${HEIGHT} aria-hidden="true">
        ${ticks.map((tick) => html`<line class="gl" x1=${EDGE.left} x2=${width.value - EDGE.right} y1=${y(tick)} y2=${y(tick)} /><text class="ax" x=${EDGE.left - 7} y=${y(tick) + 4} text-anchor="end">${format(tick)}</text>`)}
        ${at.map((time, index) => index % step === 0 && html`<text class="ax" x=${x(time)} y=${HEIGHT - 5} text-anchor=${index === 0 ? "start" : "middle"}>${clock(time)}</text>`)}
        ${bands.map(({ from, to }) => html`<rect class="c-red band" x=${x(Math.max(first, from))} y=${EDGE.top} width=${Math.max(0, x(Math.min(last, to)) - x(Math.max(first, from)))} height=${tall} />`)}
        ${lines.map((line, index) => html`<${Line} ...${series[index]} at=${at} line=${line} stacked=${stacked} x=${x} y=${y} />`)}
        ${marks.filter((mark) => mark.at >= first && mark.at <= last).map((mark) => html`<g class="c-amber"><line class="mark" x1=${x(mark.at)} x2=${x(mark.at)} y1=${EDGE.top} y2=${EDGE.top + tall} /><circle cx=${x(mark.at)} cy=${EDGE.top} r="4" /></g>`)}
        ${focus >= 0 && html`<line class="cursor" x1=${x(at[focus])} x2=${x(at[focus])} y1=${EDGE.top} y2=${EDGE.top + tall} />`}
      </svg>
      ${
        focus >= 0 &&
        html`<div class="tip" style=${{ left: `${Math.min(x(at[focus]) + 10, width.value - 150)}px` }}><b>${clock(at[focus])}</b>
        ${series.map(({ label: name, values }) => html`<div>${name} ${values[focus] === null ? "-" : format(values[focus])}</div>`)}
        ${marks
          .filter((mark) => Math.abs(mark.at - at[focus]) < (last - first) / at.length)
          .slice(0, 3)
          .map((mark) => html`<div>${mark.label}</div>`)}</div>`
      }
    </div>
    <details><summary>Figures</summary>
      <div class="wrap" tabindex="0" role="region" aria-label=${`${label}, as a table`}><table>
        <thead><tr><th scope="col">Time</th>${series.map((each) => html`<th scope="col" class="num">${each.label}</th>`)}</tr></thead>
        <tbody>${at.map((time, index) => html`<tr><td>${clock(time)}</td>${series.map(({ values }) => html`<td class="num">${values[index] === null ? "" : format(values[index])}</td>`)}</tr>`)}</tbody>
      </table></div>
    </details>
  </div>`;
}

/** Gaps where there is no value. */
function Line({ tone, fill, at, line, stacked, x, y }) {
  const runs = [];
  let run = [];
  for (const [index, value] of line.values.entries()) {
    if (value === null) {
      if (run.length > 0) runs.push(run);
      run = [];
    } else
      run.push([x(at[index]).toFixed(1), y(value).toFixed(1), y(line.below?.[index] ?? -1e9).toFixed(1)]);
  }
  if (run.length > 0) runs.push(run);
  return runs.map((points) => {
    const upper = points.map(([px, py]) => `${px},${py}`).join(" ");
    const lower = points
      .toReversed()
      .map(([px, , base]) => `${px},${base}`)
      .join(" ");
    if (points.length === 1 && !stacked)
      return html`<circle class=${`c-${tone}`} cx=${points[0][0]} cy=${points[0][1]} r="3" />`;
    return html`<g class=${`c-${tone}`}>${(fill || stacked) && html`<polygon class=${stacked ? "area" : "under"} points=${`${upper} ${lower}`} />`}${!stacked && html`<polyline points=${upper} />`}</g>`;
  });
}

function stackOf(series) {
  const sums = [];
  for (const { values } of series) {
    const below = sums.at(-1)?.values;
    sums.push({
      values: values.map((value, at) => value + (below?.[at] ?? 0)),
      below: below ?? values.map(() => 0),
    });
  }
  return sums;
}

/** A round number that is not exceeded. */
function ceiling(most, min) {
  const size = 10 ** Math.floor(Math.log10(most - min || 1));
  const round = [1, 2, 4, 5, 8, 10].find((times) => min + times * size >= most) ?? 10;
  return min + round * size;
}
