// Turns measurements into the Markdown that is printed and kept.
import os from "node:os";
import { basename } from "node:path";
import { median } from "./timing.mjs";

const UNITS = {
  ns: "ns a call",
  us: "µs a call",
  ms: "ms",
  B: "bytes an entry",
  commands: "commands a read",
};

/** The introduction of each report, above its tables. */
const REPORTS = {
  memory: {
    title: "Memory store, side by side",
    text: [
      "Values are objects of 200 bytes of JSON; reads and writes follow a Zipf(1.0) sequence over 100,000 string keys, all present.",
    ],
  },
  full: {
    title: "Full caches, side by side",
    text: [
      "Caches as they are in service: as many entries as they may have. Keys are `user:<n>`, asked for by Zipf(1.0); values are objects of",
      "200 bytes of JSON. Times of calls are CPU time, of all threads.",
    ],
  },
  kv: {
    title: "Redis store, side by side",
    text: [
      "Values are objects of 200 bytes of JSON; unless a scenario says otherwise, reads and writes pick evenly from 10,000 string keys,",
      "all present. Each measurement has a server of its own, over loopback, without persistence.",
    ],
  },
  memcached: {
    title: "Memcached store, side by side",
    text: [
      "Values are objects of 200 bytes of JSON; reads pick evenly from 10,000 string keys, all present. Each measurement has a server of",
      "its own, over loopback.",
    ],
  },
  disk: {
    title: "Store on disk, next to Redis",
    text: [
      "Values are objects of 200 bytes of JSON; reads and writes pick evenly from 10,000 string keys, all present. The baseline is raw",
      'ioredis on a server of its own, over loopback, without persistence. xcache-flushed is `durability: "disk"`.',
    ],
  },
};

/** Drivers of one library for different stores are in different folders. */
const nameOf = (library) => basename(library);

/** The results of a library in a scenario: the medians of its runs, which are worker lines with ratios added. */
function summarize(allRuns, extra) {
  const runs = allRuns.filter(({ failed }) => failed === undefined);
  const of = (name) => {
    const numbers = runs.map((run) => run[name]).filter((value) => value !== undefined);
    return numbers.length === 0 ? undefined : median(numbers);
  };
  return {
    figure: of("figure"),
    failures: allRuns.length - runs.length,
    ratio: of("ratio"),
    cpuRatio: of("cpuRatio"),
    ratios: runs.map(({ ratio }) => ratio).filter((ratio) => ratio !== undefined),
    ...Object.fromEntries(Object.keys(extra).map((name) => [name, of(name)])),
  };
}

/** A column is a title and what it shows of a library. */
function columnsOf({ baseline, extra = {}, target, unit = "ns" }, versions) {
  const named = (library) => [nameOf(library), versions[nameOf(library)]].filter(Boolean).join(" ");
  const columns = [
    ["library", named],
    [UNITS[unit], (_, { figure, failures }) => [number(figure), ...failed(failures)].join(" ").trim()],
    ...Object.entries(extra).map(([name, title]) => [title, (_, summary) => number(summary[name])]),
  ];
  if (baseline !== undefined) {
    const unlessBaseline = (show) => (library, summary) => (library === baseline ? "" : show(summary));
    columns.push(
      [`of ${nameOf(baseline)}`, (library, { ratio }) => (library === baseline ? "1" : fixed(ratio))],
      ["seen", unlessBaseline(({ ratios }) => range(ratios))],
      ["by CPU time", unlessBaseline(({ cpuRatio }) => fixed(cpuRatio))],
    );
  }
  if (target !== undefined) {
    const isOurs = (library) => library !== baseline && nameOf(library).startsWith("xcache");
    const ofOurs = (show) => (library, summary) => (isOurs(library) ? show(summary) : "");
    columns.push(
      ["target", ofOurs(() => target.text)],
      ["reached", ofOurs((summary) => (summary.failures === 0 && target.reached(summary) ? "yes" : "no"))],
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

/** `server` is the version of the store's server, if it has one. */
export function heading(report, { command, rounds, startedAt, load, server }) {
  const { title, text } = REPORTS[report];
  return [
    `# ${title}`,
    "",
    `- date: ${startedAt.toISOString().slice(0, 10)}`,
    `- node: ${process.version} on ${process.platform} ${process.arch}`,
    `- cpu: ${os.cpus().length} x ${os.cpus()[0]?.model ?? "unknown"}`,
    ...(server === undefined ? [] : [`- server: ${server}`]),
    `- load average when it began: ${load.toFixed(1)}`,
    `- command: \`${command}\`, ${rounds === 1 ? "1 round" : `${rounds} rounds`}`,
    "",
    ...text,
    "Each measurement is a process of its own, and the baseline runs again right before every library. A ratio is throughput",
    "relative to that run; the table has the median of the rounds' ratios, the lowest and highest seen, and the same by CPU time.",
    "",
  ].join("\n");
}

const failed = (times) => (times === 0 ? [] : [`failed ${times === 1 ? "once" : `${times} times`}`]);

const fixed = (value) => value?.toFixed(2) ?? "";

function number(value) {
  if (value === undefined) return "";
  if (value >= 100) return value.toFixed(0);
  return String(Number(value.toFixed(value >= 10 ? 1 : 2)));
}

const range = (numbers) =>
  numbers.length === 0 ? "" : `${Math.min(...numbers).toFixed(2)} to ${Math.max(...numbers).toFixed(2)}`;
