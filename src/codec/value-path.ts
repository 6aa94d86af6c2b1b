// Formats the path of a part inside a value: `$.items[3].run`, `$["odd key"]`, `$.byId.get("k")` for a Map value under a
// primitive key, `$.byId.values()[2]` under any other, `$.byId.keys()[2]` and `$.tags.values()[2]` for the keys of a Map and
// the members of a Set, counted from 0.

/** A number is an index, a string a property name. */
export type Step =
  | number
  | string
  | { readonly mapKey: number }
  | { readonly mapValue: unknown; readonly place: number }
  | { readonly set: number };

/** Longer paths lose their middle. */
const MOST_STEPS = 32;
const LONGEST_KEY = 64;

export function pathOf(steps: readonly Step[]): string {
  if (steps.length <= MOST_STEPS) return `$${steps.map(formatStep).join("")}`;
  const half = MOST_STEPS / 2;
  return `$${steps.slice(0, half).map(formatStep).join("")}\u2026${steps.slice(-half).map(formatStep).join("")}`;
}

function formatStep(step: Step): string {
  if (typeof step === "number") return `[${step}]`;
  if (typeof step === "string") return isPlainName(step) ? `.${shortened(step)}` : `[${quoted(step)}]`;
  if ("mapKey" in step) return `.keys()[${step.mapKey}]`;
  if ("set" in step) return `.values()[${step.set}]`;
  const { mapValue: key, place } = step;
  if (typeof key === "string") return `.get(${quoted(key)})`;
  if (typeof key === "bigint") return `.get(${shortened(String(key))}n)`;
  const nameable =
    key === null || (typeof key !== "object" && typeof key !== "function" && typeof key !== "symbol");
  return nameable ? `.get(${String(key)})` : `.values()[${place}]`;
}

function quoted(key: string): string {
  return JSON.stringify(shortened(key));
}

function shortened(key: string): string {
  return key.length <= LONGEST_KEY ? key : `${key.slice(0, LONGEST_KEY)}\u2026`;
}

// Not a regular expression: compiling one with the stack nearly exhausted ends the process.
function isPlainName(key: string): boolean {
  for (let i = 0; i < key.length; i++) {
    const char = key[i]!;
    const letter = char.toLowerCase() !== char.toUpperCase() || char === "_" || char === "$";
    if (!letter && !(i > 0 && char >= "0" && char <= "9")) return false;
  }
  return key !== "";
}
