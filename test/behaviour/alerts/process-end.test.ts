// Alerts keep no process alive, and stop() resolves even if a receiver never answers.
import { describe, expect, it } from "vitest";
import { Receiver } from "../../alerts/receiver.ts";
import { OwnProcess } from "../../support/own-process.ts";

const PRELUDE = `
import { AlertManager } from "./index.js";
const cache = { getComprehensiveMetrics: () => ({ memoryUsage: 1, totalOperations: 0, byOperation: {}, connectionFailures: 0 }) };
const full = { name: "full", metric: "memory_usage", threshold: 0.5, comparison: "greater_than" };
`;

/** Runs a program, in which `cache` has the alert `full` firing, to its end. A leaked timer would keep it alive for an hour. */
async function run(program: string) {
  await using own = new OwnProcess(PRELUDE + program);
  const { code } = await own.ended();
  return { code, words: own.words, errors: own.errors };
}

describe("a process ends by itself", () => {
  it("while a manager is running", async () => {
    expect(
      await run(`
        const manager = new AlertManager(cache, { interval: 3600 });
        manager.addAlert({ ...full, webhookUrl: "http://127.0.0.1:1/" });
        manager.start();
        say("started");
      `),
    ).toEqual({ code: 0, words: ["started"], errors: "" });
  });

  it("while a delivery waits for its next attempt", async () => {
    await using receiver = await Receiver.start((response) => {
      response.writeHead(500).end();
    });
    const { code, words, errors } = await run(`
      let held = setInterval(() => {}, 1000);
      const onError = (error) => {
        say(error.message);
        clearInterval(held);
      };
      const manager = new AlertManager(cache, { interval: 0.01, onError });
      manager.addAlert({ ...full, webhookUrl: ${JSON.stringify(receiver.url)} });
      manager.start();
    `);
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
    expect(words).toEqual([
      expect.stringMatching(/^the alert "full" \(firing\) .* it answered 500 \(attempt 1 of 10; .*\)$/),
    ]);
  });

  it("after stop() has cut off a receiver that never answers", async () => {
    await using receiver = await Receiver.start(() => {});
    const { code, words, errors } = await run(`
      const manager = new AlertManager(cache, { interval: 0.01, onError() {} });
      manager.addAlert({ ...full, webhookUrl: ${JSON.stringify(receiver.url)} });
      manager.start();
      while (manager.deliveries().pending === 0) await new Promise((resolve) => setImmediate(resolve));
      await manager.stop({ timeout: 0.05 });
      say(JSON.stringify(manager.deliveries()));
    `);
    expect({ code, errors, deliveries: JSON.parse(words.join()) }).toEqual({
      code: 0,
      errors: "",
      deliveries: { delivered: 0, failedAttempts: 1, abandoned: 1, superseded: 0, pending: 0 },
    });
  });
});
