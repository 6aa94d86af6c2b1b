// What a process has in memory, as a digest: all that can be reached from its cache, except for what decides nothing.
//
// The sources are compiled with their private fields as properties for this. The variables of functions cannot be seen.
import { createHash } from "node:crypto";

/** Objects that decide nothing, by their class: what was counted and measured. */
const UNDECISIVE = new Set([
  "Telemetry",
  "Instruments",
  "Recorder",
  "OperationRecord",
  "History",
  "Histogram",
]);

/** Likewise their fields. */
const UNDECISIVE_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  // Numbers that connections have over all worlds. There is one connection per process, which lasts.
  Connection: new Set(["id", "Connection$writer", "Connection$reader"]),
  HeldStamp: new Set(["epoch"]),
  Object: new Set(["epoch"]),
  // Calls that have ended wait here until their deadline would have passed; when a timer is due is compared elsewhere.
  Guard: new Set(["deadlines"]),
  // The one key is not evicted, and expires after the exploration.
  Table: new Set(["Table$eviction", "Table$sampling", "Table$schedule"]),
};

const NONE: ReadonlySet<string> = new Set();

/** Of this size are buffers for what passes through, and tables for more keys than one. */
const LARGE_BYTES = 4_096;

/** Objects are spelled one after another, each by what it has and by the numbers of those that it refers to. */
export function digestOf(root: object): string {
  const numbers = new Map<object, number>([[root, 0]]);
  const spelled = (value: unknown): string => {
    if (typeof value === "string") return `'${value}'`;
    if (typeof value === "function") return `${value.name}()`;
    if (typeof value !== "object" || value === null) return String(value);
    let number = numbers.get(value);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(value, number);
    }
    return `@${number}`;
  };
  let text = "";
  // Those that are found meanwhile are visited too.
  for (const found of numbers.keys()) text += contentOf(found, spelled);
  return createHash("md5").update(text).digest("base64");
}

function contentOf(found: object, spelled: (value: unknown) => string): string {
  if (ArrayBuffer.isView(found)) {
    const { buffer, byteOffset, byteLength } = found;
    return byteLength < LARGE_BYTES
      ? `\n${Buffer.from(buffer, byteOffset, byteLength).toString("latin1")}`
      : "";
  }
  const name = nameOf(found);
  let text = `\n${name}`;
  if (UNDECISIVE.has(name)) return text;
  if (found instanceof Map) for (const [key, value] of found) text += ` ${spelled(key)}=${spelled(value)}`;
  else if (found instanceof Set) for (const value of found) text += ` ${spelled(value)}`;
  const fields = found as Readonly<Record<string, unknown>>;
  const undecisive = UNDECISIVE_FIELDS[name] ?? NONE;
  for (const field of Object.keys(fields))
    if (!undecisive.has(field)) text += ` ${field}:${spelled(fields[field])}`;
  return text;
}

/** By the class. */
const names = new Map<unknown, string>();

/** The name of its class. */
function nameOf(found: object): string {
  const known = names.get(found.constructor);
  if (known !== undefined) return known;
  const name = found.constructor?.name ?? "";
  names.set(found.constructor, name);
  return name;
}
