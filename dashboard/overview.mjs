// Overview: six figures, what is worth a look, three charts, and the processes.
import { html } from "htm/preact";
import { Chart } from "./chart.mjs";
import { ago, bytes, clock, count, ms, percent, searchOfPrefix, shown } from "./format.mjs";
import { breakerTone, Card, Empty, Head, Pill, Share, Spark, Table } from "./parts.mjs";
import { linkTo, overview, range, storeNow, watch } from "./state.mjs";

const RANGES = [
  ["15m", 900],
  ["1h", 3_600],
  ["6h", 21_600],
  ["24h", 86_400],
  ["7d", 604_800],
];

export const Ranges = () => html`<div class="seg" role="group" aria-label="Time range">
  ${RANGES.map(
    ([name, seconds]) =>
      html`<button aria-pressed=${String(range.value === seconds)} onClick=${() => {
        range.value = seconds;
        void watch();
      }}>${name}</button>`,
  )}
</div>`;

const rateOf = ({ hits, misses }) => (hits + misses === 0 ? null : hits / (hits + misses));

const Figure = ({ label, value, unit, note, values, tone }) => html`<div class="card kpi">
  <span class="l">${label}</span><span class="v">${value}${unit && html`<small>${unit}</small>`}</span>
  <span class="d">${note}</span><${Spark} values=${values} tone=${tone} />
</div>`;

export function Overview() {
  const data = overview.value;
  const { totals, points, processes } = data;
  const perSecond = points.map(({ operations, seconds }) => operations / seconds);
  const peak = perSecond.indexOf(Math.max(...perSecond));
  const reads = totals.totalHits + totals.totalMisses;
  const inProcess = totals.totalHits === 0 ? 0 : 1 - totals.totalStoreHits / totals.totalHits;
  const about = totals.approximate ? "estimated" : "counted";
  // The last five minutes: over the whole range a burst would not be seen.
  const recent = points.slice(-5);
  const operations =
    recent.reduce((sum, point) => sum + point.operations, 0) /
    Math.max(
      1,
      recent.reduce((sum, { seconds }) => sum + seconds, 0),
    );
  return html`
    <${Head} title="Overview" note=${`${count(processes.length)} ${processes.length === 1 ? "process" : "processes"} now; figures of all of them`}><${Ranges} /><//>
    <div class="kpis">
      <${Figure} label="Hit rate" value=${(totals.hitRate * 100).toFixed(1)} unit="%" tone="acc" note=${reads === 0 ? "no reads" : `${percent(inProcess, 0)} inside the process`} values=${points.map((point) => rateOf(point) ?? 0)} />
      <${Figure} label="Throughput" value=${count(operations)} unit="ops/s" tone="blue" note=${peak < 0 ? "" : `peak ${count(perSecond[peak])} at ${clock(points[peak].at)}`} values=${perSecond} />
      <${Figure} label="Latency p95" value=${ms(totals.p95)} unit="ms" tone="vio" note=${`p50 ${ms(totals.p50)}, p99 ${ms(totals.p99)}`} values=${points.map(({ p95 }) => p95)} />
      <${Figure} label="Errors" value=${percent(totals.totalErrors / Math.max(1, totals.totalOperations), 2).replace(" %", "")} unit="%" tone="red" note=${`${count(totals.totalErrors)} of ${count(totals.totalOperations)} calls`} values=${points.map(({ errors }) => errors)} />
      <${Figure} label="Entries" value=${count(totals.totalKeys)} tone="acc" note=${totals.scope === "server" ? "on the whole server" : about} values=${[]} />
      <${Figure} label="Memory" value=${bytes(totals.totalMemoryBytes).split(" ")[0]} unit=${bytes(totals.totalMemoryBytes).split(" ")[1]} tone="acc" note=${data.memoryUsage > 0 ? `store ${percent(data.memoryUsage)} full` : about} values=${[]} />
    </div>
    <${Advice} advice=${data.advice} />
    <${Charts} data=${data} />
    <${Processes} processes=${processes} />`;
}

const ABOUT = { function: "functions", tag: "tags", prefix: "keys", process: "health" };

const Advice = ({ advice }) =>
  advice.length > 0 &&
  html`<div class="finds" role="group" aria-label="Worth a look">
    ${advice.slice(0, 6).map(
      ({ severity, title, evidence, suggestion, about }) => html`<section class="card finding">
      <span class=${`dot ${severity === "problem" ? "r" : severity === "warning" ? "a" : ""}`} /><b>${shown(title)}</b>
      <p>${shown(evidence)} ${suggestion}</p>
      ${about && html`<a href=${linkTo(ABOUT[about.kind], about.kind === "prefix" ? searchOfPrefix(about.name) : about.name)}>See the ${about.kind} →</a>`}
    </section>`,
    )}
  </div>`;

function Charts({ data }) {
  const { points, invalidations } = data;
  const at = points.map((point) => point.at);
  const marks = [...new Map(invalidations.map((mark) => [mark.at, mark])).values()].map((mark) => ({
    at: Date.parse(mark.at),
    label: `${mark.tag ?? mark.kind} invalidated`,
  }));
  const bands = breakerBands(data.processes, data.now);
  const rates = points.map((point) => (rateOf(point) === null ? null : rateOf(point) * 100));
  const low = Math.max(
    0,
    Math.floor((Math.min(100, ...rates.filter((rate) => rate !== null)) - 5) / 10) * 10,
  );
  const of = (name) => points.map((point) => point[name] / point.seconds);
  const scaled = (name) => points.map((point) => point[name] * 1_000);
  return html`
    <${Card} title="Hit rate" note="all processes" side=${html`<${Legend} items=${[["acc", "hit rate"], ["amber", `${count(invalidations.reduce((sum, mark) => sum + mark.count, 0))} invalidations`], ["red", "breaker open"]]} />`}>
      <${Chart} label="Hit rate over time" at=${at} min=${low} marks=${marks} bands=${bands} format=${(value) => `${Math.round(value)} %`} series=${[{ label: "hit rate", tone: "acc", values: rates, fill: true }]} />
    <//>
    <div class="g2">
      <${Card} title="Throughput" note="reads a second" side=${html`<${Legend} items=${[["acc", "hit"], ["vio", "stale"], ["amber", "miss"]]} />`}>
        <${Chart} label="Reads a second over time" at=${at} stacked=${true} format=${count} series=${[
          { label: "hit", tone: "acc", values: of("hits") },
          { label: "stale", tone: "vio", values: of("stale") },
          {
            label: "miss",
            tone: "amber",
            values: points.map(({ misses, stale, seconds }) => Math.max(0, misses - stale) / seconds),
          },
        ]} />
      <//>
      <${Card} title="Latency" note="ms" side=${html`<${Legend} items=${[["acc", "p50"], ["blue", "p95"], ["vio", "p99"]]} />`}>
        <${Chart} label="Latency over time in milliseconds" at=${at} bands=${bands} format=${(value) => value.toFixed(value < 10 ? 2 : 0)} series=${[
          { label: "p50", tone: "acc", values: scaled("p50") },
          { label: "p95", tone: "blue", values: scaled("p95") },
          { label: "p99", tone: "vio", values: scaled("p99") },
        ]} />
      <//>
    </div>`;
}

/** When any process had its breaker open. */
export function breakerBands(processes, end) {
  return processes.flatMap(({ states }) => {
    const changes = states.filter(({ what }) => what === "circuit_breaker");
    return changes.flatMap(({ at, state }, index) =>
      state === "closed"
        ? []
        : [{ from: Date.parse(at), to: Date.parse(changes[index + 1]?.at ?? "") || end, state }],
    );
  });
}

const Legend = ({ items }) =>
  html`<div class="legend">${items.map(([tone, name]) => html`<span><i class=${`b-${tone}`} />${name}</span>`)}</div>`;

const Processes = ({ processes }) => html`<${Card} title="Processes" note="seen in the last minute">
  ${
    processes.length === 0
      ? html`<${Empty}>No process has reported yet: they do ten seconds after their first call, with enable_metrics.<//>`
      : html`<${Table} label="Processes" heads=${["Process", "Hit rate", "In process", ">ops/s", ">p95", ">Loads/min", ">Heap", "Breaker", ">Seen"]}>
        ${processes.map(
          (each) => html`<tr>
          <td class="mono">${shown(each.host, 40)} · ${each.pid}${each.isSelf ? " (this)" : ""}</td>
          <td><${Share} share=${each.hitRate} /></td>
          <td><${Share} share=${each.totalHits === 0 ? 0 : 1 - each.totalStoreHits / each.totalHits} tone="blue" /></td>
          <td class="num">${count(each.operationsPerSecond)}</td><td class="num">${ms(each.p95)} ms</td>
          <td class="num">${count((each.totalLoads / each.seconds) * 60)}</td><td class="num">${bytes(each.heapBytes)}</td>
          <td><${Pill} tone=${breakerTone(each.circuitBreaker)}>${each.circuitBreaker.replace("_", "-")}<//></td>
          <td class="num dim">${ago(each.seenAt, storeNow.value)}</td>
        </tr>`,
        )}
      <//>`
  }
<//>`;
