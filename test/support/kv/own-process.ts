// Runs a script on the sources in a process of its own, to see whether that ends by itself.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { runFolder } from "../run-folder.ts";

const SOURCES = join(import.meta.dirname, "../../../src");
const PARTS = ["core", "backends/wire", "backends/kv"];

let folder: string | undefined;

/** The sources that the wire needs, as JavaScript. */
function compiled(): string {
  if (folder !== undefined) return folder;
  folder = mkdtempSync(join(runFolder(), "own-process-"));
  const compilerOptions: ts.CompilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
    rewriteRelativeImportExtensions: true,
  };
  for (const part of PARTS) {
    const files = readdirSync(join(SOURCES, part), { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".ts"),
    );
    for (const name of files) {
      const text = readFileSync(join(SOURCES, part, name), "utf8");
      const file = join(folder, part, name.replace(/ts$/, "js"));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, ts.transpileModule(text, { compilerOptions }).outputText);
    }
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  return folder;
}

const PRELUDE = `
import { KvBackend } from "./backends/kv/backend.js";
import { systemClock } from "./core/clock.js";
const say = (text) => process.stdout.write(text + "\\n");
const told = () => new Promise((resolve) => {
  process.stdin.once("data", () => {
    process.stdin.destroy();
    resolve();
  });
});
const open = (kvUrl, host) => {
  const backend = new KvBackend({ kvUrl });
  backend.open({
    clock: systemClock, operationTimeoutMs: 500, connectTimeoutMs: 1_000, poolSize: 1,
    report() {}, evicted() {}, async onServer() {}, ...host,
  });
  return backend;
};
`;

export interface Ending {
  readonly code: number | null;
  readonly lines: readonly string[];
  readonly errors: string;
  /** From its last line to its end. */
  readonly lingeredMs: number;
}

export interface Company {
  /** Is told each line. */
  readonly hear?: (line: string) => void;
  /** What \`told()\` waits for. */
  readonly event?: Promise<unknown>;
}

/**
 * Runs the script, in which \`open(url)\` opens a backend, \`say(text)\` writes a line and \`told()\` resolves after the event;
 * until then that keeps the process alive.
 */
export function runOwnProcess(script: string, { hear, event }: Company = {}): Promise<Ending> {
  const cwd = compiled();
  const file = join(cwd, `script-${process.hrtime.bigint()}.js`);
  writeFileSync(file, PRELUDE + script);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file], { cwd, stdio: ["pipe", "pipe", "pipe"] });
    const lines: string[] = [];
    let errors = "";
    let lastLineAt = performance.now();
    const impatience = setTimeout(() => child.kill("SIGKILL"), 15_000);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      lastLineAt = performance.now();
      for (const line of text.split("\n").filter((each) => each !== "")) {
        lines.push(line);
        hear?.(line);
      }
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors += text;
    });
    // A process that ends early hears nothing.
    child.stdin.on("error", () => {});
    event?.then(() => child.stdin.end("\n"), reject);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(impatience);
      resolve({ code, lines, errors, lingeredMs: performance.now() - lastLineAt });
    });
  });
}
