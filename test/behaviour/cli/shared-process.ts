// Runs the installed program for all command lines of a test file in one process: to start one takes longer than most commands.
// Tests about the process itself, such as its signals, deadlines and terminals, start one each.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll } from "vitest";
import { recordServer } from "../../support/run-folder.ts";
import { bareEnvironment, installedProgram, type Ran, type RunOptions } from "./installed.ts";

/** A command line, as the process gets it. */
export interface Order {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
  readonly cwd: string;
}

/** To be called once in a test file. What it returns runs the program like `xcache`, one command line after the other. */
export function sharedProcess(): (args: readonly string[], options?: RunOptions) => Promise<Ran> {
  let child: ChildProcess | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  afterAll(async () => {
    if (child?.connected !== true) return;
    const ended = once(child, "exit");
    child.disconnect();
    await ended;
  });
  return (args, { env = {}, input = "", cwd = process.cwd() } = {}) => {
    const ran = turn.then(() => {
      child ??= begin();
      return run(child, { args, env: bareEnvironment(env), input, cwd });
    });
    turn = ran.catch(() => {});
    return ran;
  };
}

function begin(): ChildProcess {
  const child = fork(join(import.meta.dirname, "shared-process.mjs"), [installedProgram()], {
    env: bareEnvironment(),
    execArgv: ["--no-warnings"],
  });
  child.once("exit", recordServer(child.pid!));
  return child;
}

function run(child: ChildProcess, order: Order): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void =>
      reject(new Error(`the program ended with exit code ${code}`));
    child.once("exit", ended);
    child.once("message", (ran: Ran) => {
      child.off("exit", ended);
      resolve(ran);
    });
    child.send(order);
  });
}
