// Ctrl-C: progress is reported, finished work is not lost, and no command waits for a store that does not answer.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { installedProgram, start, xcache } from "../behaviour/cli/installed.ts";
import { testFolder, withCache } from "../behaviour/cli/store.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const MANY = 40_000;
/** Longer than any test, so that a command that waits for the store fails its test. */
const PATIENT = ["--timeout", "10m"];
const folder = testFolder();

let redis: RedisServer;
const started = new Set<ChildProcess>();
beforeAll(async () => {
  installedProgram();
  redis = await startRedis();
  await withCache({ kvUrl: redis.url, operationTimeout: 60 }, async (cache) => {
    for (let at = 0; at < MANY; at += 5_000) {
      const batch = Array.from({ length: 5_000 }, (_, i) => [`key:${at + i}`, at + i] as const);
      await cache.setMany(batch, { ttl: 3_600 });
    }
  });
});
afterEach(() => {
  // Left over from a failed test.
  redis.thaw();
  for (const child of started) child.kill("SIGKILL");
  started.clear();
});
afterAll(() => redis.stop());

class Running {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #closed: Promise<unknown>;

  constructor(...args: string[]) {
    this.child = start(args, { env: { XCACHE_KV_URL: redis.url }, cwd: folder });
    started.add(this.child);
    this.child.stdin?.on("error", () => {});
    this.child.stdout?.on("data", (text) => {
      this.stdout += text;
    });
    this.child.stderr?.on("data", (text) => {
      this.stderr += text;
    });
    this.#closed = once(this.child, "close");
  }

  async interrupted(): Promise<number | null> {
    this.child.kill("SIGINT");
    await this.#closed;
    return this.child.exitCode;
  }

  /** Resolves when the program has read all of it. */
  async reads(text: string): Promise<void> {
    await new Promise((resolve) => this.child.stdin?.write(text, resolve));
  }
}

/** proc(5), net/tcp: local and remote address in hexadecimal digits, then the state; 01 is an open connection. */
const connections = (): number =>
  readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .filter((line) => {
      const [, , remote, state] = line.trim().split(/\s+/);
      return state === "01" && remote?.endsWith(`:${redis.port.toString(16).toUpperCase().padStart(4, "0")}`);
    }).length;

async function whileFrozen<T>(work: () => Promise<T>): Promise<T> {
  redis.freeze();
  try {
    return await work();
  } finally {
    redis.thaw();
  }
}

const entryLines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, at) => `{"key":"new:${from + at}","value":${from + at}}\n`).join("");
const stored = async (): Promise<number> => Number(await redis.cli("DBSIZE"));

describe("export", () => {
  test.each([[[]], [["--json"]]])(
    "%j leaves complete lines under another name, and reports how many",
    async (more) => {
      const name = `out${more.length}.jsonl`;
      const running = new Running("export", name, ...PATIENT, ...more);
      const partial = join(folder, `${name}.partial`);
      await until(() => existsSync(partial) && statSync(partial).size > 0, {
        what: "the first entries are written",
      });
      const code = await whileFrozen(() => running.interrupted());
      expect(code).toBe(130);
      const lines = readFileSync(partial, "utf8").trimEnd().split("\n");
      const keys = lines.map((line) => (JSON.parse(line) as { key: string }).key);
      expect(new Set(keys).size).toBe(keys.length);
      expect(keys.length).toBeLessThan(MANY);
      expect(existsSync(join(folder, name))).toBe(false);
      const count = keys.length.toLocaleString("en-US");
      if (more.length === 0) {
        expect([running.stdout, running.stderr]).toEqual([
          "",
          `interrupted after ${count} entries; they are in ${name}.partial\n`,
        ]);
      } else {
        expect(JSON.parse(running.stdout)).toMatchObject({
          file: `${name}.partial`,
          exported: keys.length,
          complete: false,
        });
      }
    },
  );

  test("that was interrupted is not replaced by the next one unless forced", async () => {
    const again = await xcache(["export", "out0.jsonl"], { env: { XCACHE_KV_URL: redis.url }, cwd: folder });
    expect(again.code).toBe(2);
    expect(again.stderr).toMatch(/^error: out0\.jsonl\.partial already exists\nhint: .*--force/);
  });
});

describe("import and warm", () => {
  test.each([
    ["import", 0],
    ["warm", 10_000],
  ] as const)("%s store every line that was read, and say up to which line", async (command, from) => {
    const before = await stored();
    const running = new Running(command, "-", ...PATIENT, "--json");
    await running.reads(entryLines(from, from + 650));
    // An incomplete batch waits for more lines.
    await until(async () => (await stored()) >= before + 600, { what: "three batches are stored" });
    expect(await running.interrupted()).toBe(130);
    expect(JSON.parse(running.stdout)).toMatchObject({
      read: 650,
      stored: 650,
      last_line: 650,
      complete: false,
    });
    expect(await stored()).toBe(before + 650);
  });

  test("the second Ctrl-C ends at once when the store does not accept a batch", async () => {
    const before = await stored();
    const running = new Running("import", "-", ...PATIENT);
    await running.reads(entryLines(20_000, 20_200));
    await until(async () => (await stored()) === before + 200, { what: "the first batch is stored" });
    await whileFrozen(async () => {
      await running.reads(entryLines(20_200, 20_400));
      const isOver = (): boolean => running.child.exitCode !== null || !running.child.kill("SIGINT");
      await until(isOver, { what: "it has ended" });
      expect(running.child.exitCode).toBe(130);
    });
  });

  test("an import whose store stops answering reports what was stored and up to which line", async () => {
    const before = await stored();
    const running = new Running("import", "-", "--timeout", "500ms");
    await running.reads(entryLines(30_000, 30_400));
    // The second batch starts once the first is known to be stored.
    await until(async () => (await stored()) === before + 400, { what: "two batches are stored" });
    await whileFrozen(async () => {
      await running.reads(entryLines(30_400, 30_600));
      await once(running.child, "close");
    });
    expect(running.child.exitCode).toBe(3);
    const report = /^stored (\d+) entries in \S+, failed after line (\d+)\nerror: .*\nhint: /.exec(
      running.stderr,
    );
    const [count, line] = [Number(report?.[1]), Number(report?.[2])];
    expect([200, 400]).toContain(line);
    expect(count).toBeGreaterThanOrEqual(line);
    expect(count).toBeLessThanOrEqual(400);
  });
});

test("an interrupted removal reports how many entries are gone, and that there may be more", async () => {
  const running = new Running("invalidate", "--pattern", "key:*", "--yes", "--no-count", "--json");
  const before = await stored();
  await until(async () => (await stored()) < before, { what: "the first are gone" });
  expect(await running.interrupted()).toBe(130);
  const { removed, complete } = JSON.parse(running.stdout) as { removed: number; complete: boolean };
  expect([removed > 0, complete]).toEqual([true, false]);
  expect(await stored()).toBe(before - removed);
});

describe("a store that does not answer", () => {
  test.each([
    [["ping"]],
    [["stats"]],
    [["stats", "--watch"]],
    [["list"]],
    [["get", "k"]],
    [["health"]],
    [["doctor"]],
  ])("is not waited for by %j", async (args) => {
    await whileFrozen(async () => {
      const before = connections();
      const running = new Running(...args, ...PATIENT);
      await until(() => connections() > before, { what: "the program has connected" });
      expect(await running.interrupted()).toBe(130);
      expect(running.stdout).toBe("");
    });
  });

  test("is no different from endless input: neither is waited for", async () => {
    const running = new Running("set", "k", "-");
    // More than fits into the pipe, so it is being read.
    await running.reads("x".repeat(4 * 2 ** 20));
    expect(await running.interrupted()).toBe(130);
  });
});

test("watching resumes as soon as the store answers again, however often it failed", async () => {
  const running = new Running("stats", "--watch", "--interval", "10ms", "--timeout", "500ms");
  const failures = (): number => running.stderr.split("did not answer").length - 1;
  await until(() => running.stdout !== "", { what: "the first look" });
  await whileFrozen(() =>
    until(() => failures() >= 7, { what: "more failures than open a circuit breaker" }),
  );
  const before = running.stdout.length;
  await until(() => running.stdout.length > before, { what: "a look after them" });
  expect(await running.interrupted()).toBe(130);
});
