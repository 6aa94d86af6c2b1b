// docs/guide/getting-started.md, pasted step by step into an empty folder with the package as it is published.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { npmEnvironment } from "../../scripts/release/npm-environment.mjs";
import { install, pack, runtimeDependencies } from "../../scripts/test/extras-folder.mjs";
import { codeBlocksOf } from "../support/markdown.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { runFolder } from "../support/run-folder.ts";

const ROOT = join(import.meta.dirname, "../..");

interface Step {
  readonly heading: string;
  readonly file: string;
  readonly code: string;
}

const page = readFileSync(join(ROOT, "docs/guide/getting-started.md"), "utf8");

/** What a reader pastes, in the order of the page: blocks with the name of a file, under their headings. */
const steps: readonly Step[] = page.split(/^(?=## )/m).flatMap((section) =>
  codeBlocksOf(section).flatMap(({ flags, code }) => {
    const file = flags.flatMap((flag) => /^\[([\w.-]+)\]$/.exec(flag)?.[1] ?? [])[0];
    return file === undefined ? [] : [{ heading: section.split("\n", 1)[0]!, file, code }];
  }),
);

const place = mkdtempSync(join(runFolder(), "getting-started-"));
const app = join(place, "app");
let redis: RedisServer;

beforeAll(async () => {
  expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  redis = await startRedis();
  mkdirSync(app);
  await ended(spawn("npm", ["init", "-y"], { cwd: app, env: npmEnvironment() }));
  await install(app, await pack(place, [ROOT, ...runtimeDependencies()]), { offline: true });
});
afterAll(async () => {
  await redis.stop();
  rmSync(place, { recursive: true });
});

/** Runs a file as a reader would. The usual ports lead to the servers of the test. */
function node(file: string): ChildProcess {
  const env = {
    ...npmEnvironment(),
    DOCS_SERVERS: JSON.stringify({ 6379: redis.port }),
    NODE_OPTIONS: `--import=${join(ROOT, "test/docs/stage.mjs")}`,
  };
  return spawn(process.execPath, [file], { cwd: app, env });
}

/** What it printed on the standard output; rejects with what it said if it fails. */
function ended(child: ChildProcess, heard: (output: string) => void = () => {}): Promise<string> {
  let output = "";
  let problems = "";
  child.stderr?.on("data", (text: Buffer) => {
    problems += text.toString();
  });
  child.stdout?.on("data", (text: Buffer) => {
    output += text.toString();
    heard(output);
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) =>
      code === 0 ? resolve(output) : reject(new Error(`ended with ${code ?? signal}: ${problems}`)),
    );
  });
}

/** What the lines of a program say that they print. */
const promised = (code: string): string =>
  [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => `${text!.trimEnd()}\n`).join("");

test("every step runs as pasted", async () => {
  const files = new Set(steps.map(({ file }) => file));
  expect([...files]).toEqual([
    "shop.mjs",
    "shared.mjs",
    "cache.yaml",
    "configured.mjs",
    "responses.mjs",
    "observed.mjs",
    "server.mjs",
  ]);
  for (const { heading, file, code } of steps) {
    appendFileSync(join(app, file), `${code}\n`);
    if (!file.endsWith(".mjs")) continue;
    const child = node(file);
    const output = await ended(child, (heard) => {
      // The last step ends when it is asked to.
      if (heard === "listening\n") child.kill("SIGTERM");
    });
    expect(output, `${heading}: ${file}`).toBe(promised(readFileSync(join(app, file), "utf8")));
  }
});
