// From measurements to the Markdown that is printed and kept.
import os from "node:os";
import { median } from "./timing.mjs";

const UNITS = { ns: "ns per call", ms: "ms", B: "bytes per entry" };

/** What one library reached in a scenario, over all rounds. `runs` are worker lines, `ratio` added where there is a baseline. */
export function summarize(runs, extra = {}) {
  const ratios = runs.map(({ ratio }) => ratio).filter((ratio) => ratio !== undefined);
  return {
    figure: median(runs.map(({ figure }) => figure)),
    ratio: ratios.length === 0 ? undefined : median(ratios),
    ratios,
    ...Object.fromEntries(Object.keys(extra).map((name) => [name, median(runs.map((run) => run[name]))])),
  };
}

export function scenarioSection(scenario, runsByLibrary, versions) {
  const { baseline, extra = {}, target, unit = "ns" } = scenario;
  const columns = ["library", UNITS[unit], ...Object.values(extra)];
  if (baseline !== undefined) columns.push(`of ${baseline}`, "seen");
  if (target !== undefined) columns.push("target", "reached");
  const rows = [...runsByLibrary].map(([library, runs]) => {
    const summary = summarize(runs, extra);
    const cells = [named(library, versions), number(summary.figure), ...Object.keys(extra).map((name) => number(summary[name]))];
    if (baseline !== undefined) {
      const isBaseline = library === baseline;
      cells.push(isBaseline ? "1" : summary.ratio.toFixed(2), isBaseline ? "" : range(summary.ratios));
    }
    if (target !== undefined) {
      const judged = library === "xcache";
      cells.push(judged ? target.text : "", judged ? (target.reached(summary) ? "yes" : "no") : "");
    }
    return cells;
  });
  const table = [columns, columns.map((_, at) => (at === 0 ? "---" : "---:")), ...rows];
  const lines = table.map((cells) => `| ${cells.join(" | ")} |`);
  return [`## ${scenario.title}`, "", ...(scenario.note === undefined ? [] : [scenario.note, ""]), ...lines, ""].join("\n");
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
    "Values are objects of 200 bytes of JSON. Reads and writes follow a Zipf(1.0) sequence over 100,000 string keys, all present.",
    "Each measurement is a process of its own. The baseline runs again right before every library; a ratio is throughput relative to",
    "that run, and the table shows the median of the rounds' ratios and, under *seen*, the lowest and the highest.",
    "",
  ].join("\n");
}

const named = (library, versions) => (versions[library] === undefined ? library : `${library} ${versions[library]}`);
const number = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : String(Number(value.toFixed(2))));
const range = (numbers) => `${Math.min(...numbers).toFixed(2)} to ${Math.max(...numbers).toFixed(2)}`;
