// Recorded traces from a folder that is not part of the project; see the formats below.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/** Traces of the Caffeine simulator (simulator/src/main/resources), with the capacities to run. */
export const RECORDED = [
  { file: "orm-busy.trace.xz", read: integers(4), most: 1_500_000, capacities: [500, 2_000, 5_000] },
  { file: "web07.trace.xz", read: integers(4), capacities: [500, 2_000] },
  { file: "trace_vaultservice.gz", read: integers(8), capacities: [500, 2_000] },
  { file: "scarab-recs.trace.xz", read: integers(8), capacities: [2_000, 10_000] },
  { file: "cpp.trace.gz", read: lines, capacities: [50, 100] },
  { file: "gli.trace.gz", read: lines, capacities: [500, 1_500] },
  { file: "multi1.trace.gz", read: lines, capacities: [500, 1_500] },
  { file: "multi3.trace.gz", read: lines, capacities: [500, 2_000] },
  { file: "loop.trace.gz", read: lines, capacities: [500, 1_000] },
];

export const nameOf = (file) => file.replace(/(\.trace)?\.(gz|xz)$/, "");

/** The keys of a trace, numbered by their first appearance. */
export function recordedTrace(folder, { file, read, most = Number.POSITIVE_INFINITY }) {
  const numbers = new Map();
  const trace = [];
  for (const key of read(unpacked(join(folder, file)))) {
    if (trace.length >= most) break;
    let number = numbers.get(key);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(key, number);
    }
    trace.push(number);
  }
  return Uint32Array.from(trace);
}

function unpacked(path) {
  if (path.endsWith(".gz")) return gunzipSync(readFileSync(path));
  return execFileSync("xz", ["--decompress", "--stdout", path], { maxBuffer: 2 ** 30 });
}

/** Big-endian keys of this many bytes. */
function integers(bytes) {
  return function* (content) {
    for (let at = 0; at + bytes <= content.length; at += bytes)
      yield bytes === 4 ? content.readUInt32BE(at) : content.readBigUInt64BE(at);
  };
}

/** A number per line; lines with an asterisk separate periods. */
function* lines(content) {
  for (const line of content.toString("latin1").split("\n")) {
    const key = line.trim();
    if (key !== "" && !key.includes("*")) yield key;
  }
}
