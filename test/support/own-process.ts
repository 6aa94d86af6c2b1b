// Runs a program on the compiled sources in a child process that a test can message, hear, stop, kill and await.
import { type ChildProcess, execFileSync, fork, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { recordServer, runFolder } from "./run-folder.ts";
import { until } from "./until.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Each source compiled to a file of its own. The global set-up makes sure that they match src/, and so does what is published. */
const MODULES = join(ROOT, ".cache/modules");
const PUBLISHED = join(ROOT, "dist");

/** Set by the global set-up to the reason why the compiled sources cannot be used. */
export const STALE_MODULES = "XCACHE_TEST_STALE_MODULES";

let programs = 0;

/**
 * Without the settings of V8 that suit test workers: with these, Node's own modules are compiled at every start, since what they
 * were compiled to when Node was built is for V8's defaults.
 */
export const EXEC_ARGV = process.execArgv.filter((argument) => argument.startsWith("--disable-warning="));

const IMPORTS = /((?:from |import |import\()")\.\/([^"]+)/g;

/**
 * The folder that a program imports from. What is published is in a few files, which takes Node half the time to load; one copy
 * of the library must do, so that a program with parts that are not published has all of them as modules.
 */
function folderOf(program: string): string {
  const paths = [...program.matchAll(IMPORTS)].map(([, , path = ""]) => path);
  return paths.every((path) => existsSync(join(PUBLISHED, path))) ? PUBLISHED : MODULES;
}

/** Writes a program or a file of a worker thread, whose relative imports are relative to src/ (`./index.js`). Returns its path. */
export function programFile(program: string): string {
  const reason = process.env[STALE_MODULES];
  if (reason !== undefined) throw new Error(reason);
  const file = join(programFolder(), `${process.pid}-${programs++}.mjs`);
  const folder = pathToFileURL(folderOf(program)).href;
  writeFileSync(file, program.replaceAll(IMPORTS, `$1${folder}/$2`));
  return file;
}

/** A folder whose programs find the packages that the sources find. */
function programFolder(): string {
  const folder = join(runFolder(), "programs");
  mkdirSync(folder, { recursive: true });
  try {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return folder;
}

/** Copies the compiled sources to a folder where no package can be found. Returns the folder. */
export function modulesWithoutPackages(): string {
  const folder = mkdtempSync(join(runFolder(), "modules-"));
  cpSync(MODULES, folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  return folder;
}

const PRELUDE = `
import { systemClock } from "${pathToFileURL(join(MODULES, "core/clock.js")).href}";
const settings = JSON.parse(process.argv[2]);
const say = (said, more) => process.send({ said, ...more });
const nextMessage = () => new Promise((resolve) => process.once("message", resolve));
const HOST = {
  clock: systemClock, operationTimeoutMs: 1_000, connectTimeoutMs: 1_000, poolSize: 1,
  report() {}, evicted() {}, async onServer() {},
};
`;

/** A message of a process: a word, and any data that came with it. */
export interface Said {
  readonly said: string;
  readonly [name: string]: unknown;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface OwnProcessOptions {
  /** What the program finds as `settings`. */
  readonly settings?: object;
  /** Called with each word as it arrives. */
  readonly onSaid?: (word: string) => void;
}

/**
 * In the program: `say(word, more)`, `nextMessage()` (resolves with the next message, and keeps the process alive until then),
 * `settings`, `systemClock` and `HOST` (what a backend is opened with). The channel to the test keeps no process alive.
 */
export class OwnProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #unheard: Said[] = [];
  readonly #words: string[] = [];
  readonly #ended: Promise<Ending>;
  #lastWordAt = performance.now();
  #lingeredMs = Number.NaN;
  #output = "";
  #errors = "";

  constructor(program: string, { settings = {}, onSaid }: OwnProcessOptions = {}) {
    const file = programFile(PRELUDE + program);
    const stdio: StdioOptions = ["ignore", "pipe", "pipe", "ipc"];
    this.#child = fork(file, [JSON.stringify(settings)], { stdio, execArgv: EXEC_ARGV });
    // One that hangs is ended with the run.
    const strikeOff = recordServer(this.pid);
    this.#child.on("message", (message: Said) => {
      this.#lastWordAt = performance.now();
      this.#unheard.push(message);
      this.#words.push(message.said);
      onSaid?.(message.said);
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    this.#ended = once(this.#child, "close").then(([code, signal]) => {
      strikeOff();
      this.#lingeredMs = performance.now() - this.#lastWordAt;
      return { code, signal };
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Every word it said so far, in order. */
  get words(): readonly string[] {
    return this.#words;
  }

  /** What it wrote to its standard output so far. */
  get output(): string {
    return this.#output;
  }

  get errors(): string {
    return this.#errors;
  }

  /** Resolves when it says this word, or has said it; each message is consumed once. Rejects when it ended without. */
  async heard(word: string): Promise<Said> {
    for (;;) {
      const at = this.#unheard.findIndex(({ said }) => said === word);
      if (at >= 0) return this.#unheard.splice(at, 1)[0] as Said;
      if (!this.#child.connected)
        throw new Error(`a process ended before it said "${word}": ${this.#errors}`);
      const settled = new AbortController();
      const { signal } = settled;
      await Promise.race([
        once(this.#child, "message", { signal }),
        once(this.#child, "disconnect", { signal }),
      ]).finally(() => settled.abort());
    }
  }

  /** A process that ended early receives nothing. */
  tell(message: object = {}): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Resolves when it writes to its standard output. */
  async wrote(): Promise<void> {
    if (this.#child.stdout !== null) await Promise.race([once(this.#child.stdout, "data"), this.#ended]);
  }

  /** Resolves when the process is stopped, by whatever cause. */
  async stopped(): Promise<void> {
    const state = (): string =>
      execFileSync("ps", ["-o", "state=", "-p", String(this.pid)], { encoding: "utf8" }).trim();
    await until(() => state().startsWith("T"), { what: "the process is stopped" });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Resolves when it has ended, however. */
  ended(): Promise<Ending> {
    return this.#ended;
  }

  /** How long it ran after its last word; known when it has ended. */
  get lingeredMs(): number {
    return this.#lingeredMs;
  }

  /** Kills it in the middle of its work. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
