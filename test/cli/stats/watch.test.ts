// stats --watch: redrawn in place on a terminal, a line at a time in a pipe, figures of the whole fleet.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, test } from "vitest";
import { XCache } from "../../../src/index.ts";
import { jsonLines, start, xcache } from "../../behaviour/cli/installed.ts";
import { PseudoTerminal } from "../../behaviour/cli/pseudo-terminal.ts";
import { diskUrl, testFolder } from "../../behaviour/cli/store.ts";

const folder = testFolder();
const kvUrl = diskUrl(folder);
const env = { XCACHE_KV_URL: kvUrl };
const WATCH = ["stats", "--watch", "--interval", "50ms"];

/** A process of the fleet: 3 hits and 1 miss, reported to the store when it ends. */
async function work(): Promise<void> {
  const cache = new XCache({ kvUrl });
  await cache.set("a", "x".repeat(100));
  for (const key of ["a", "a", "a", "b"]) await cache.get(key);
  await cache.disconnect();
}

beforeAll(work);

test("stats shows the figures of all processes, with a curve", async () => {
  const { stdout, stderr } = await xcache(["stats"], { env });
  expect(stdout).toMatch(/^hit rate {4}75\.0 % +3 hits, 1 misses +[ ▁▂▃▄▅▆▇█]*▆/);
  expect(stdout).toMatch(/\noperations {2}5 +[\d.]+\/s +▁+[▁█]*█/);
  expect(stdout).toMatch(/\nprocesses {3}1 +since \d{4}-\d\d-\d\d \d\d:\d\d UTC\n$/);
  expect(stderr).toBe("");
});

describe("on a terminal", () => {
  test("the figures are redrawn in place, and change with what processes do", async () => {
    const terminal = new PseudoTerminal(WATCH, { env });
    await terminal.shows(/hit rate +75\.0 %/);
    await work();
    await terminal.shows(/ops\/s +[\d.]+ +\+5 /);
    const { screen } = terminal;
    expect(screen.filter((line) => line.startsWith("hit rate"))).toHaveLength(1);
    expect(screen[0]).toMatch(/^xcache stats file:/);
    expect(screen.join("\n")).toMatch(/keys +1 +[▁▂▃▄▅▆▇█]+\n/);
    terminal.type("q");
    expect(await terminal.ended()).toBe(0);
    expect(terminal.output).toContain("\u001b[?25l");
    expect(terminal.output.trimEnd().endsWith("\u001b[?25h")).toBe(true);
  });

  test("p pauses, h helps, r resets, Ctrl-C ends with 130", async () => {
    const terminal = new PseudoTerminal(WATCH, { env });
    await terminal.shows("q quit");
    terminal.type("p");
    await terminal.shows("paused");
    terminal.type("h");
    await terminal.shows("pause or resume");
    terminal.type("p");
    await terminal.shows(/^(?!.*paused)/s);
    await terminal.shows(/keys .*█{3}/);
    terminal.type("pr");
    await terminal.shows(/keys +1 +█\n/);
    terminal.type("\u0003");
    expect(await terminal.ended()).toBe(130);
  });

  test("output that does not fit is cut, so that nothing scrolls", async () => {
    const terminal = new PseudoTerminal([...WATCH, "--count", "3"], { env, columns: 30, rows: 6 });
    expect(await terminal.ended()).toBe(0);
    expect(terminal.screen.filter(Boolean).length).toBeLessThanOrEqual(5);
    for (const line of terminal.screen) expect(line.length).toBeLessThanOrEqual(30);
  });

  test("in CI nothing is redrawn", async () => {
    const terminal = new PseudoTerminal([...WATCH, "--count", "2"], { env: { ...env, CI: "true" } });
    expect(await terminal.ended()).toBe(0);
    expect(terminal.output).not.toContain("\u001b[?25l");
    expect(terminal.screen.filter((line) => line.includes("hit_rate="))).toHaveLength(2);
  });
});

describe("in a pipe", () => {
  test("each reading is one line", async () => {
    const { code, stdout } = await xcache([...WATCH, "--count", "2"], { env });
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(line).toMatch(
        /^\d{4}-\d\d-\d\dT[\d:.]+Z hit_rate=75\.0% ops\/s=\S+ p95=\S+ms errors=0 keys=1 memory=\d+B$/,
      );
    }
    expect(code).toBe(0);
  });

  test("each reading is one JSON object with --json", async () => {
    const looks = jsonLines(await xcache([...WATCH, "--count", "2", "--json"], { env }));
    expect(looks).toHaveLength(2);
    expect(looks[0]).toMatchObject({ at: expect.any(String), hit_rate: 0.75, key_count: 1, total_keys: 1 });
  });

  test("a reader that closes the pipe ends it without an error, and an interrupt ends it with 130", async () => {
    for (const [end, code] of [
      ["close", 0],
      ["interrupt", 130],
    ] as const) {
      const child = start(WATCH, { env });
      let complaint = "";
      child.stderr?.on("data", (text) => {
        complaint += text;
      });
      await once(createInterface({ input: child.stdout! }), "line");
      if (end === "close") child.stdout?.destroy();
      else child.kill("SIGINT");
      await once(child, "exit");
      expect([child.exitCode, complaint]).toEqual([code, ""]);
    }
  });
});
