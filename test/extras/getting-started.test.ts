// docs/guide/getting-started.md, pasted step by step into an empty folder with the package as it is published.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { npmEnvironment } from "../../scripts/release/npm-environment.mjs";
import { codeBlocksOf } from "../support/markdown.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { runFolder } from "../support/run-folder.ts";
import { damagesOf, follow, paste, type Step, stepsOf } from "./guide-steps.ts";
import { addInstalledPackage } from "./installed-package.ts";

const ROOT = join(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/guide/getting-started.md"), "utf8");
const steps = stepsOf(page);

const place = mkdtempSync(join(runFolder(), "getting-started-"));
const app = join(place, "app");
let redis: RedisServer;
/** The usual ports lead to the servers of the test. */
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  redis = await startRedis();
  env = {
    ...npmEnvironment(),
    DOCS_SERVERS: JSON.stringify({ 6379: redis.port }),
    NODE_OPTIONS: `--import=${join(ROOT, "test/docs/stage.mjs")}`,
  };
  mkdirSync(app);
  await promisify(execFile)("npm", ["init", "-y"], { cwd: app, env: npmEnvironment() });
  await addInstalledPackage(app);
});
afterAll(async () => {
  await redis.stop();
  rmSync(place, { recursive: true });
});

test("begins with the commands that the test has run", () => {
  expect(codeBlocksOf(page)[0]).toMatchObject({ language: "sh", code: "npm init -y\nnpm install xcache" });
});

test("has these steps", () => {
  expect(steps.map(({ heading, file }) => `${heading.replace(/\D+/g, "")} ${file}`)).toEqual([
    "1 shop.mjs",
    "2 shop.mjs",
    "3 shop.mjs",
    "4 shop.mjs",
    "5 shop.mjs",
    "6 shared.mjs",
    "6 cache.yaml",
    "6 configured.mjs",
    "7 responses.mjs",
    "8 observed.mjs",
    "9 server.mjs",
  ]);
});

test("every step runs as pasted", async () => {
  for (const step of steps) await follow(app, step, env);
});

describe.concurrent("a broken step is named", () => {
  const cases = steps.flatMap((step, index) =>
    Object.entries(damagesOf(step)).map(([damage, damaged]) => ({
      title: `${step.heading.slice(3)}, ${step.file} ${damage}`,
      before: steps.slice(0, index),
      damaged,
    })),
  );

  /** In a folder below the application, whose packages it finds. The steps before it are pasted, but not run. */
  async function followDamaged(before: readonly Step[], damaged: Step): Promise<void> {
    const folder = mkdtempSync(join(app, "damaged-"));
    for (const step of before) paste(folder, step);
    await follow(folder, damaged, env);
  }

  test.each(cases)("$title", async ({ before, damaged }) => {
    await expect(followDamaged(before, damaged)).rejects.toThrow(`${damaged.heading}, ${damaged.file}: `);
  });

  test("1. a program that prints something else than it says", async () => {
    const [first] = steps;
    const damaged = { ...first!, code: first!.code.replace("// prints 2", "// prints 3") };
    await expect(followDamaged([], damaged)).rejects.toThrow('printed "2\\n", promised "3\\n"');
  });

  test("6. a misspelt setting of cache.yaml, by the program that reads it", async () => {
    const at = steps.findIndex(({ file }) => file === "cache.yaml");
    const [before, settings, program] = [steps.slice(0, at), steps[at]!, steps[at + 1]!];
    const misspelt = { ...settings, code: settings.code.replace("key_prefix", "key_prefx") };
    await expect(followDamaged([...before, misspelt], program)).rejects.toThrow(
      /configured\.mjs: [\s\S]*key_prefx[\s\S]*key_prefix/,
    );
  });
});
