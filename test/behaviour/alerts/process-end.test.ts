// Alerts keep no process alive, and stop() comes back even where nothing else would.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { beforeAll, describe, expect, it } from "vitest";
import { Receiver } from "../../alerts/receiver.ts";
import { runFolder } from "../../support/run-folder.ts";

const SOURCES = join(import.meta.dirname, "../../../src");
const COMPILER_OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2022,
  rewriteRelativeImportExtensions: true,
};

/** A process ends within moments; a timer of ours would keep it for an hour. */
const LONGEST_MS = 10_000;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(runFolder(), "alerts-"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  compile("alerts/manager.ts", new Set());
});

/** A source and all that it imports, as JavaScript. */
function compile(path: string, done: Set<string>): void {
  if (done.has(path)) return;
  done.add(path);
  const text = readFileSync(join(SOURCES, path), "utf8");
  const file = join(folder, path.replace(/ts$/, "js"));
  mkdirSync(dirname(file), { recursive: true });
  const { outputText } = ts.transpileModule(text, { compilerOptions: COMPILER_OPTIONS });
  writeFileSync(file, outputText);
  for (const [, target] of outputText.matchAll(/ from "(\.[^"]+)\.js"/g)) {
    compile(join(dirname(path), `${target}.ts`), done);
  }
}

async function run(body: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const script = join(folder, "script.js");
  writeFileSync(
    script,
    `import { AlertManager } from "./alerts/manager.js";
    const cache = { getComprehensiveMetrics: () => ({ memoryUsage: 1, totalOperations: 0, byOperation: {}, connectionFailures: 0 }) };
    const full = { name: "full", metric: "memory_usage", threshold: 0.5, comparison: "greater_than" };
    const say = (text) => process.stdout.write(text + "\\n");
    ${body}`,
  );
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "pipe"], timeout: LONGEST_MS });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

describe("a process ends by itself", () => {
  it("while a manager is started", async () => {
    expect(
      await run(`
        const manager = new AlertManager(cache, { interval: 3600 });
        manager.addAlert({ ...full, webhookUrl: "http://127.0.0.1:1/" });
        manager.start();
        say("started");
      `),
    ).toEqual({ code: 0, output: "started\n" });
  });

  it("while a delivery waits for its next attempt", async () => {
    await using receiver = await Receiver.start((response) => {
      response.writeHead(500).end();
    });
    const { code, output } = await run(`
      let held = setInterval(() => {}, 1000);
      const onError = (error) => {
        say(error.message);
        clearInterval(held);
      };
      const manager = new AlertManager(cache, { interval: 0.01, onError });
      manager.addAlert({ ...full, webhookUrl: ${JSON.stringify(receiver.url)} });
      manager.start();
    `);
    expect(code).toBe(0);
    expect(output).toMatch(/^the alert "full" \(firing\) .* it answered 500 \(attempt 1 of 10; .*\)\n$/);
  });

  it("after stop() has cut off a receiver that never answers", async () => {
    await using receiver = await Receiver.start(() => {});
    const { code, output } = await run(`
      const manager = new AlertManager(cache, { interval: 0.01, onError() {} });
      manager.addAlert({ ...full, webhookUrl: ${JSON.stringify(receiver.url)} });
      manager.start();
      while (manager.deliveries().pending === 0) await new Promise((resolve) => setImmediate(resolve));
      await manager.stop({ timeout: 0.05 });
      say(JSON.stringify(manager.deliveries()));
    `);
    expect({ code, output: JSON.parse(output) }).toEqual({
      code: 0,
      output: { delivered: 0, failedAttempts: 1, abandoned: 1, superseded: 0, pending: 0 },
    });
  });
});
