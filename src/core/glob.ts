// Glob patterns over keys: `*`, `?`, `[a-z]`, `[^a]` and backslash escapes, as Redis has them.
import { describeArrival, InvalidKeyError } from "./errors.ts";
import { requirePattern } from "./keys.ts";

export type Matcher = (key: string) => boolean;

interface Step {
  /** A run of any length (`*`), or one character accepted by `accepts`. */
  readonly star: boolean;
  readonly accepts: (character: number) => boolean;
}

/**
 * Compiles a pattern. Matching takes at most pattern x key steps: there is no regular expression to blow up.
 * Throws InvalidKeyError for a pattern that is not a non-empty string of 64 KiB at most, or has an open `[`.
 */
export function glob(pattern: string): Matcher {
  requirePattern(pattern);
  if (pattern === "*") return () => true;
  const steps = parse(pattern);
  return (key) => matches(steps, key);
}

/** The characters every match must start with: a store can narrow its scan by them. */
export function literalPrefix(pattern: string): string {
  return /^[^*?[\\]*/.exec(pattern)?.[0] ?? "";
}

function parse(pattern: string): readonly Step[] {
  const steps: Step[] = [];
  const literal = (code: number): Step => ({ star: false, accepts: (character) => character === code });
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === "*") {
      if (!steps.at(-1)?.star) steps.push({ star: true, accepts: () => true });
    } else if (character === "?") {
      steps.push({ star: false, accepts: () => true });
    } else if (character === "[") {
      const end = classEnd(pattern, at);
      steps.push({ star: false, accepts: characterClass(pattern.slice(at + 1, end)) });
      at = end;
    } else {
      if (character === "\\" && at + 1 < pattern.length) at++;
      steps.push(literal(pattern.charCodeAt(at)));
    }
  }
  return steps;
}

function classEnd(pattern: string, start: number): number {
  for (let at = start + 1; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++;
    else if (pattern[at] === "]" && at > start + 1) return at;
  }
  throw new InvalidKeyError(
    `pattern ${describeArrival(pattern)} has a [ at position ${start} that is never closed`,
    {
      hint: "Close the class with ] or write \\[ for the character itself.",
    },
  );
}

function characterClass(body: string): (character: number) => boolean {
  const negated = body.startsWith("^");
  const ranges: [number, number][] = [];
  for (let at = negated ? 1 : 0; at < body.length; at++) {
    if (body[at] === "\\" && at + 1 < body.length) at++;
    const low = body.charCodeAt(at);
    let high = low;
    if (body[at + 1] === "-" && at + 2 < body.length) {
      at += 2;
      if (body[at] === "\\" && at + 1 < body.length) at++;
      high = body.charCodeAt(at);
    }
    ranges.push(low <= high ? [low, high] : [high, low]);
  }
  return (character) => ranges.some(([low, high]) => low <= character && character <= high) !== negated;
}

function matches(steps: readonly Step[], key: string): boolean {
  let step = 0;
  let at = 0;
  let resumeStep = -1;
  let resumeAt = 0;
  while (at < key.length) {
    const current = steps[step];
    if (current?.star) {
      resumeStep = ++step;
      resumeAt = at;
    } else if (current?.accepts(key.charCodeAt(at))) {
      step++;
      at++;
    } else if (resumeStep >= 0) {
      step = resumeStep;
      at = ++resumeAt;
    } else {
      return false;
    }
  }
  while (steps[step]?.star) step++;
  return step === steps.length;
}
