// The charts of the docs, drawn from the reports in bench/results: no figure is typed by hand.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rect, svg, text } from "./svg.mjs";

const RESULTS = fileURLToPath(new URL("../../bench/results/", import.meta.url));
const WIDTH = 760;
const LABELS = 210;
const VALUES = 90;
const ROW = 30;
const TOP = 84;

/**
 * @typedef {{ file: string, report: string, section: string, column: string, unit: string, title: string, note: string }} Chart
 * `section` is how its heading in the report begins, `column` the heading of the column that is drawn.
 */

/** @type {readonly Chart[]} */
const CHARTS = [
  {
    file: "redis-read",
    report: "kv",
    section: "get, 64 in flight",
    column: "µs a call",
    unit: "µs",
    title: "Read from Redis, 64 in flight",
    note: "Wall time per read of a 200-byte object; less is better. ioredis alone does not decode.",
  },
  {
    file: "redis-write",
    report: "kv",
    section: "set, 64 in flight",
    column: "µs a call",
    unit: "µs",
    title: "Write to Redis, 64 in flight",
    note: "Wall time per write of a 200-byte object; less is better. ioredis alone neither encodes nor sets a TTL.",
  },
  {
    file: "near-hit",
    report: "full",
    section: "getOrSet hit in a full near tier",
    column: "ns a call",
    unit: "ns",
    title: "Hit in a full near tier (L1) over Redis",
    note: "Awaited getOrSet, shared values; less is better. map-minimal is a plain Map in front of a socket.",
  },
  {
    file: "stampede",
    report: "kv",
    section: "stampede",
    column: "loads",
    unit: "",
    title: "Cache stampede: loads for 1,000 calls in 4 processes",
    note: "250 concurrent getOrSet in each process on one cold key, 50 ms load; less is better.",
  },
  {
    file: "tag-read",
    report: "kv",
    section: "store commands per read",
    column: "commands a read",
    unit: "",
    title: "Redis commands per read of an entry with two tags",
    note: "Counted by the server, no near tier in front; less is better.",
  },
  {
    file: "memory-hit",
    report: "full",
    section: "getOrSet hit, full cache of 100,000",
    column: "ns a call",
    unit: "ns",
    title: "Hit in a full cache in memory",
    note: "Awaited getOrSet, shared values; less is better. map is a plain Map without await.",
  },
  {
    file: "memory-miss",
    report: "full",
    section: "getOrSet miss, full cache of 100,000",
    column: "ns a call",
    unit: "ns",
    title: "Miss in a full cache in memory, load answers at once",
    note: "getOrSet, which evicts another entry; less is better. map-awaited has no bound, single flight or TTL.",
  },
  {
    file: "memory-bytes",
    report: "memory",
    section: "memory per entry",
    column: "bytes an entry",
    unit: "B",
    title: "Memory per entry beyond key and value",
    note: "1,000,000 entries with a TTL; less is better. A plain Map keeps no TTL.",
  },
];

/** @param {string} row */
const cellsOf = (row) =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

/** @param {string} report */
const read = (report) => readFileSync(`${RESULTS}${report}.md`, "utf8");

/**
 * The rows of the first table of a section, as cells.
 * @param {string} report @param {string} section
 */
function tableOf(report, section) {
  const part = read(report)
    .split(/^## /m)
    .find((each) => each.startsWith(section));
  const [head, , ...rows] = (part ?? "").split("\n").filter((line) => line.startsWith("|"));
  if (head === undefined) throw new Error(`bench/results/${report}.md has no table under "${section}"`);
  return { head: cellsOf(head), rows: rows.map(cellsOf) };
}

/**
 * Where and how a report was measured.
 * @param {string} report
 */
function provenanceOf(report) {
  const facts = Object.fromEntries(
    [...read(report).matchAll(/^- (\w+): (.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  return `${facts.date}, Node ${facts.node}, ${facts.cpu}. ${facts.command?.replaceAll("`", "")}.`;
}

const isOurs = (/** @type {string} */ library) => library.startsWith("xcache");

/** @param {Chart} chart */
function draw({ report, section, column, unit, title, note }) {
  const { head, rows } = tableOf(report, section);
  const index = head.indexOf(column);
  if (index < 0) throw new Error(`bench/results/${report}.md has no column "${column}" under "${section}"`);
  const bars = rows
    .map((cells) => ({ library: cells[0] ?? "", amount: Number(cells[index]) }))
    .sort((a, b) => a.amount - b.amount || Number(isOurs(b.library)) - Number(isOurs(a.library)));
  const scale = (WIDTH - LABELS - VALUES - 40) / Math.max(...bars.map(({ amount }) => amount));
  const body = bars.flatMap(({ library, amount }, row) => {
    const y = TOP + row * ROW;
    const length = Math.max(2, Number((amount * scale).toFixed(1)));
    const shown = `${amount.toLocaleString("en-US")}${unit === "" ? "" : ` ${unit}`}`;
    return [
      text("ink", LABELS + 12, y + 15, library, "end"),
      rect(isOurs(library) ? "ours" : "other", LABELS + 24, y, length, 20, 3),
      text("ink", LABELS + 24 + length + 8, y + 15, shown),
    ];
  });
  const height = TOP + bars.length * ROW + 36;
  return svg({
    width: WIDTH,
    height,
    title,
    description: `${note} ${bars.map(({ library, amount }) => `${library}: ${amount} ${unit}`.trim()).join("; ")}.`,
    body: [
      text("head", 24, 36, title),
      text("dim", 24, 60, note),
      ...body,
      text("dim", 24, height - 16, provenanceOf(report)),
    ],
  });
}

/** Hit ratios: for each trace those of xcache and LRU, and the optimum. */
function drawHitRatios() {
  const { head, rows } = tableOf("hit-ratio", "Made traces");
  const series = ["LRU", "W-TinyLFU", "xcache", "optimum"];
  const scale = (WIDTH - LABELS - VALUES - 40) / 100;
  const group = series.length * 16 + 14;
  const body = rows.flatMap((cells, row) => {
    const y = TOP + row * group;
    return [
      text("ink", LABELS + 12, y + 34, cells[0] ?? "", "end"),
      ...series.flatMap((name, line) => {
        const amount = Number(cells[head.indexOf(name)]);
        const length = Math.max(2, Number((amount * scale).toFixed(1)));
        return [
          rect(isOurs(name) ? "ours" : "other", LABELS + 24, y + line * 16, length, 13, 2),
          text("dim", LABELS + 24 + length + 8, y + line * 16 + 11, `${name} ${amount.toFixed(1)} %`),
        ];
      }),
    ];
  });
  const height = TOP + rows.length * group + 36;
  const title = "Hit ratio of the memory store";
  return svg({
    width: WIDTH,
    height,
    title,
    description:
      "Per cent of requests answered from the cache, per trace, for LRU, W-TinyLFU, xcache and the optimum.",
    body: [
      text("head", 24, 36, title),
      text("dim", 24, 60, "1,000,000 requests over 100,000 keys, room for 1,000 entries; more is better."),
      ...body,
      text(
        "dim",
        24,
        height - 16,
        "xcache is the store itself, the others are simulations. node bench/hit-ratio/run.mjs",
      ),
    ],
  });
}

/** Every chart, by its path from the root of the repository. */
export const charts = () =>
  Object.fromEntries([
    ...CHARTS.map((chart) => [`docs/images/charts/${chart.file}.svg`, draw(chart)]),
    ["docs/images/charts/hit-ratio.svg", drawHitRatios()],
  ]);
