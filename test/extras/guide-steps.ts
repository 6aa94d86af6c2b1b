// The steps of docs/guide/getting-started.md: what a reader pastes into which file, and what each program must print.
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { codeBlocksOf } from "../support/markdown.ts";

export interface Step {
  readonly heading: string;
  readonly file: string;
  readonly code: string;
}

/** In the order of the page: blocks with the name of a file, under their headings. */
export function stepsOf(page: string): readonly Step[] {
  return page.split(/^(?=## )/m).flatMap((section) =>
    codeBlocksOf(section).flatMap(({ flags, code }) => {
      const file = flags.flatMap((flag) => /^\[([\w.-]+)\]$/.exec(flag)?.[1] ?? [])[0];
      return file === undefined ? [] : [{ heading: section.split("\n", 1)[0]!, file, code }];
    }),
  );
}

/** Pastes a step at the end of its file. */
export function paste(folder: string, { file, code }: Step): void {
  appendFileSync(join(folder, file), `${code}\n`);
}

/** Pastes a step and runs its file as a reader would. Rejects, naming the step, unless it prints what it promises. */
export async function follow(folder: string, step: Step, env: NodeJS.ProcessEnv): Promise<void> {
  const { heading, file, code } = step;
  const fail = (problem: string): never => {
    throw new Error(`${heading}, ${file}: ${problem}`);
  };
  if (code.trim() === "") fail("has no code");
  paste(folder, step);
  if (!file.endsWith(".mjs")) return;
  if (promised(code) === "") fail("does not say what it prints");
  const { output, problems, ending } = await run(folder, file, env);
  if (ending !== 0) fail(`ended with ${ending}: ${problems}`);
  const expected = promised(readFileSync(join(folder, file), "utf8"));
  if (output !== expected) fail(`printed ${JSON.stringify(output)}, promised ${JSON.stringify(expected)}`);
}

/** What the lines of a program say that they print. */
const promised = (code: string): string =>
  [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => `${text!.trimEnd()}\n`).join("");

/** A program that hangs is ended. */
const DEADLINE_MS = 60_000;

interface Ended {
  readonly output: string;
  readonly problems: string;
  readonly ending: number | NodeJS.Signals | null;
}

function run(cwd: string, file: string, env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = spawn(process.execPath, [file], { cwd, env, timeout: DEADLINE_MS, killSignal: "SIGKILL" });
  let output = "";
  let problems = "";
  child.stderr.on("data", (text: Buffer) => {
    problems += text.toString();
  });
  child.stdout.on("data", (text: Buffer) => {
    output += text.toString();
    // The last step, a server, ends when it is asked to.
    if (output === "listening\n") child.kill("SIGTERM");
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ output, problems, ending: code ?? signal }));
  });
}

/** A step as a careless edit would leave it, by what is wrong with it. */
export function damagesOf(step: Step): Readonly<Record<string, Step>> {
  const emptied = { ...step, code: "" };
  if (!step.file.endsWith(".mjs")) return { "without its code": emptied };
  return {
    "without its code": emptied,
    "with a name that is not declared": { ...step, code: step.code.replace(DECLARATION, "$1$2Renamed") },
  };
}

/** The first name that a step declares, which it uses further on. */
const DECLARATION = /^(let |const |async function )(\w+)/m;
