// Scripts on the sources in processes of their own: whether they end by themselves, and what they do together.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { transformWithEsbuild } from "vite";
import { runFolder } from "../run-folder.ts";

const ROOT = join(import.meta.dirname, "../../..");

let folder: string | undefined;

/** Makes the sources JavaScript, once; to be called before any process is made. */
export async function compileSources(): Promise<void> {
  if (folder !== undefined) return;
  const made = mkdtempSync(join(runFolder(), "own-process-"));
  const names = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  for (const name of names.filter((each) => each.endsWith(".ts"))) {
    const source = join(ROOT, "src", name);
    const { code } = await transformWithEsbuild(readFileSync(source, "utf8"), source, { target: "es2022" });
    const file = join(made, name.replace(/ts$/, "js"));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code.replace(/(from |import\()"(\.{1,2}\/[^"]+)\.ts"/g, '$1"$2.js"'));
  }
  writeFileSync(join(made, "package.json"), '{ "type": "module" }');
  symlinkSync(join(ROOT, "node_modules"), join(made, "node_modules"));
  folder = made;
}

const PRELUDE = `
import { MemcachedBackend } from "./backends/memcached/backend.js";
import { XCache } from "./xcache.js";
const say = (text) => process.stdout.write(text + "\\n");
const told = () => new Promise((resolve) => process.stdin.once("data", resolve));
const openCache = (kvUrl, config) => new XCache({ operationTimeout: 0.5, ...config, backend: new MemcachedBackend({ kvUrl }) });
`;

export class OwnProcess {
  readonly lines: string[] = [];
  errors = "";
  /** Its exit code, and how long it stayed after its last line. */
  readonly ended: Promise<{ readonly code: number | null; readonly lingeredMs: number }>;
  readonly #child: ChildProcess;
  #heard: () => void = () => {};
  #isOver = false;

  /** In the script, `openCache(url)` opens a cache, `say(text)` writes a line and `told()` resolves after `tell`. */
  constructor(script: string) {
    if (folder === undefined) throw new Error("the sources were not compiled");
    const cwd = folder;
    const file = join(cwd, `script-${process.hrtime.bigint()}.js`);
    writeFileSync(file, PRELUDE + script);
    const child = spawn(process.execPath, [file], { cwd, stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    const impatience = setTimeout(() => child.kill("SIGKILL"), 15_000);
    let lastLineAt = performance.now();
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      lastLineAt = performance.now();
      this.lines.push(...text.split("\n").filter((line) => line !== ""));
      this.#heard();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.errors += text;
    });
    // A process that ends early hears nothing.
    child.stdin.on("error", () => {});
    this.ended = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        clearTimeout(impatience);
        this.#isOver = true;
        this.#heard();
        resolve({ code, lingeredMs: performance.now() - lastLineAt });
      });
    });
  }

  /** Resolves when it has said this. */
  async said(line: string): Promise<void> {
    while (!this.lines.includes(line)) {
      if (this.#isOver) throw new Error(`it ended without "${line}": ${this.errors}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  tell(): void {
    this.#child.stdin?.end("\n");
  }

  /** As `tell`, when there is more to be told later. */
  tellFirst(): void {
    this.#child.stdin?.write("\n");
  }
}
