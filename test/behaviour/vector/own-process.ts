// Runs a script on the sources in a process of its own, which says a line when it has done what it was told.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { transformWithEsbuild } from "vite";
import { runFolder } from "../../support/run-folder.ts";

const SOURCES = join(import.meta.dirname, "../../../src");
/** Parts that a semantic cache has nothing to do with. */
const OTHERS = /^(cli|web|db|alerts|functions|testing)\/|^(index|cached-dependency)\.ts$/;

/** The sources as JavaScript, in a folder of their own. */
export async function compileSources(): Promise<string> {
  const folder = mkdtempSync(join(runFolder(), "vector-process-"));
  const paths = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
  await Promise.all(
    paths
      .filter((path) => path.endsWith(".ts") && !OTHERS.test(path))
      .map(async (path) => {
        const { code } = await transformWithEsbuild(readFileSync(join(SOURCES, path), "utf8"), path, {
          target: "es2022",
        });
        const file = join(folder, path.replace(/ts$/, "js"));
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, code.replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1"));
      }),
  );
  symlinkSync(join(SOURCES, "../node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "program.js"), PROGRAM);
  return folder;
}

/** Evaluates what it is told, with `answers` at hand, and says the result. */
const PROGRAM = `
import { createInterface } from "node:readline";
import { SemanticCache } from "./vector/index.js";
import { XCache } from "./xcache.js";
const { kvUrl, nearCache, exactUpTo } = JSON.parse(process.argv[2]);
const cache = new XCache({ kvUrl, nearCache, operationTimeout: 10 });
const answers = new SemanticCache({ cache, namespace: "faq", threshold: 0.6, exactUpTo });
const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  const result = await new AsyncFunction("answers", "cache", line)(answers, cache).catch((error) => "failed: " + error);
  process.stdout.write(JSON.stringify(result ?? null) + "\\n");
}
await cache.disconnect();
`;

/** A process with a semantic cache of its own. */
export class OwnProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  constructor(
    cwd: string,
    config: { readonly kvUrl: string; readonly nearCache?: boolean; readonly exactUpTo?: number },
  ) {
    this.#child = spawn(process.execPath, ["program.js", JSON.stringify(config)], { cwd });
    this.#child.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** `code` is a function body on one line, with \`answers\` and \`cache\`. */
  async run(code: string): Promise<unknown> {
    this.#child.stdin.write(`${code}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("the process ended");
    return JSON.parse(value);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async end(): Promise<number | null> {
    this.#child.stdin.end();
    if (this.#child.exitCode !== null) return this.#child.exitCode;
    return new Promise((resolve) => this.#child.once("exit", resolve));
  }
}
