// From measurements to the Markdown that is printed and kept.
import os from "node:os";
import { median } from "./timing.mjs";

const UNITS = { ns: "ns a call", ms: "ms", B: "bytes an entry" };

/** What a library reached in a scenario: the medians of its runs, which are worker lines with ratios added. */
function summarize(runs, extra) {
  const of = (name) => {
    const numbers = runs.map((run) => run[name]).filter((value) => value !== undefined);
    return numbers.length === 0 ? undefined : median(numbers);
  };
  return {
    figure: of("figure"),
    ratio: of("ratio"),
    cpuRatio: of("cpuRatio"),
    ratios: runs.map(({ ratio }) => ratio),
    ...Object.fromEntries(Object.keys(extra).map((name) => [name, of(name)])),
  };
}

/** A column is a title and what it shows of a library. */
function columnsOf({ baseline, extra = {}, target, unit = "ns" }, versions) {
  const versionOf = (library) => (versions[library] === undefined ? "" : ` ${versions[library]}`);
  const columns = [
    ["library", (library) => library + versionOf(library)],
    [UNITS[unit], (_, { figure }) => number(figure)],
    ...Object.entries(extra).map(([name, title]) => [title, (_, summary) => number(summary[name])]),
  ];
  if (baseline !== undefined) {
    const unlessBaseline = (show) => (library, summary) => (library === baseline ? "" : show(summary));
    columns.push(
      [`of ${baseline}`, (library, { ratio }) => (library === baseline ? "1" : ratio.toFixed(2))],
      ["seen", unlessBaseline(({ ratios }) => range(ratios))],
      ["by CPU time", unlessBaseline(({ cpuRatio }) => cpuRatio?.toFixed(2) ?? "")],
    );
  }
  if (target !== undefined) {
    const ofXCache = (show) => (library, summary) => (library === "xcache" ? show(summary) : "");
    columns.push(
      ["target", ofXCache(() => target.text)],
      ["reached", ofXCache((summary) => (target.reached(summary) ? "yes" : "no"))],
    );
  }
  return columns;
}

export function scenarioSection(scenario, runsByLibrary, versions) {
  const columns = columnsOf(scenario, versions);
  const rows = [...runsByLibrary].map(([library, runs]) => {
    const summary = summarize(runs, scenario.extra ?? {});
    return columns.map(([, show]) => show(library, summary));
  });
  const rule = columns.map((_, at) => (at === 0 ? "---" : "---:"));
  const table = [columns.map(([title]) => title), rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  const note = scenario.note === undefined ? [] : [scenario.note, ""];
  return [`## ${scenario.title}`, "", ...note, ...table, ""].join("\n");
}

export function heading({ command, rounds, startedAt, load }) {
  return [
    "# Memory store, side by side",
    "",
    `- date: ${startedAt.toISOString().slice(0, 10)}`,
    `- node: ${process.version} on ${process.platform} ${process.arch}`,
    `- cpu: ${os.cpus().length} x ${os.cpus()[0]?.model ?? "unknown"}`,
    `- load average when it began: ${load.toFixed(1)}`,
    `- command: \`${command}\`, ${rounds} rounds`,
    "",
    "Values are objects of 200 bytes of JSON; reads and writes follow a Zipf(1.0) sequence over 100,000 string keys, all present.",
    "Each measurement is a process of its own, and the baseline runs again right before every library. A ratio is throughput",
    "relative to that run; the table has the median of the rounds' ratios, the lowest and highest seen, and the same by CPU time.",
    "",
  ].join("\n");
}

function number(value) {
  if (value >= 100) return value.toFixed(0);
  return String(Number(value.toFixed(value >= 10 ? 1 : 2)));
}

const range = (numbers) => `${Math.min(...numbers).toFixed(2)} to ${Math.max(...numbers).toFixed(2)}`;
