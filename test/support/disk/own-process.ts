// Runs a script on the sources in a process of its own, which can be told, heard, stopped and killed.
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { transformWithEsbuild } from "vite";
import { runFolder } from "../run-folder.ts";
import { until } from "../until.ts";

const ROOT = join(import.meta.dirname, "../../..");

let scripts = 0;

/** The sources as JavaScript, next to the packages they use; made once a run. */
export async function compiled(): Promise<string> {
  const shared = compiledFolder();
  if (existsSync(shared)) return shared;
  const target = await compileSources();
  symlinkSync(join(ROOT, "node_modules"), join(target, "node_modules"));
  try {
    renameSync(target, shared);
  } catch {
    // Another worker was first.
    rmSync(target, { recursive: true, force: true });
  }
  return shared;
}

const compiledFolder = (): string => join(runFolder(), "disk-sources");

/** The sources as JavaScript in a folder where no package is found. */
export async function compileSources(): Promise<string> {
  const target = mkdtempSync(join(runFolder(), "own-process-"));
  const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const compilerOptions = { verbatimModuleSyntax: true, target: "es2022" } as const;
  for (const name of sources.filter((path) => path.endsWith(".ts"))) {
    const text = readFileSync(join(ROOT, "src", name), "utf8");
    const { code } = await transformWithEsbuild(text, name, {
      tsconfigRaw: { compilerOptions },
      sourcemap: false,
    });
    const file = join(target, name.replace(/ts$/, "js"));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code.replace(/((?:from|import)\s*\(?\s*"\.[^"\n]*)\.ts"/g, '$1.js"'));
  }
  writeFileSync(join(target, "package.json"), '{ "type": "module" }');
  return target;
}

const PRELUDE = `
import { writeSync } from "node:fs";
import { DiskBackend } from "./backends/disk/backend.js";
import { systemClock } from "./core/clock.js";
const settings = JSON.parse(process.argv[2]);
const say = (said, more) => process.send({ said, ...more });
const told = () => new Promise((resolve) => process.once("message", resolve));
const openBackend = (host) => {
  const backend = new DiskBackend({ directory: settings.directory, ...settings.options });
  backend.open({
    clock: systemClock, operationTimeoutMs: 1_000, connectTimeoutMs: 1_000, poolSize: 1,
    report() {}, evicted() {}, async onServer() {}, ...host,
  });
  return backend;
};
const openCache = async (config) => {
  const { XCache } = await import("./xcache.js");
  return new XCache({ backend: new DiskBackend({ directory: settings.directory, ...settings.options }), ...config });
};
const entry = (key, bytes = Buffer.from("value")) => ({
  kind: "entry", version: systemClock.token(), key, namespaceStamps: [], tags: [],
  created: Date.now(), expires: Infinity, staleUntil: Infinity, payload: { format: 0, bytes },
});
`;

export interface Said {
  readonly said: string;
  readonly [name: string]: unknown;
}

/** Needs `compiled()` to have been awaited. In its script: `say(word, more)`, `told()`, `openBackend()`, `openCache(config)`, `entry(key, bytes)` and `settings`. */
export class OwnProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #said: Said[] = [];
  readonly #ended: Promise<unknown>;
  #output = "";
  #errors = "";

  constructor(script: string, settings: { readonly directory: string; readonly [name: string]: unknown }) {
    const cwd = compiledFolder();
    const file = join(cwd, `script-${process.pid}-${scripts++}.js`);
    writeFileSync(file, PRELUDE + script);
    this.#child = fork(file, [JSON.stringify(settings)], { cwd, stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#child.on("message", (message: Said) => this.#said.push(message));
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    this.#ended = once(this.#child, "close");
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** What it wrote on its standard output so far. */
  get output(): string {
    return this.#output;
  }

  get errors(): string {
    return this.#errors;
  }

  /** Resolves when it says this, or has said it; each saying is heard once. */
  async heard(word: string): Promise<Said> {
    for (;;) {
      const at = this.#said.findIndex(({ said }) => said === word);
      if (at >= 0) return this.#said.splice(at, 1)[0] as Said;
      if (!this.#child.connected)
        throw new Error(`a process ended before it said "${word}": ${this.#errors}`);
      await Promise.race([once(this.#child, "message"), once(this.#child, "disconnect")]);
    }
  }

  tell(message: object = {}): void {
    this.#child.send(message);
  }

  /** Resolves when it writes to its standard output. */
  async wrote(): Promise<void> {
    if (this.#child.stdout !== null) await Promise.race([once(this.#child.stdout, "data"), this.#ended]);
  }

  /** Resolves when it is stopped, by itself or by somebody. */
  async stopped(): Promise<void> {
    const state = (): string =>
      execFileSync("ps", ["-o", "state=", "-p", String(this.pid)], { encoding: "utf8" }).trim();
    await until(() => state().startsWith("T"), { what: "the process is stopped" });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** How it ended, by itself or not. */
  async ended(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
    await this.#ended;
    return { code: this.#child.exitCode, signal: this.#child.signalCode };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
