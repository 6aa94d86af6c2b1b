// extras: the packages of each feature set, and the command of the package manager in use.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXTRA_NAMES, EXTRAS } from "../../../src/cli/doctor/extras.ts";
import { packageManagerOf } from "../../../src/core/package-manager.ts";
import { OLDEST_SUPPORTED } from "../../../src/core/peer-versions.ts";
import { xcache } from "./installed.ts";
import { testFolder } from "./store.ts";

const folder = testFolder();
const { peerDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"),
) as {
  peerDependencies: Record<string, string>;
};

const project = (files: Readonly<Record<string, string>>): string => {
  const place = mkdtempSync(join(folder, "project-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
  return place;
};

test("the feature sets are the six of the specification, disk and prisma; full has all but the database library", () => {
  const specified = ["full", "fuzzy", "memcached", "monitoring", "vector", "web"];
  expect([...EXTRA_NAMES].sort()).toEqual([...specified, "disk", "prisma"].sort());
  const { prisma: _, ...others } = EXTRAS;
  for (const name of Object.values(others).flat()) expect(EXTRAS.full as readonly string[]).toContain(name);
});

test("every package is an optional peer dependency", () => {
  for (const name of Object.values(EXTRAS).flat() as string[])
    expect(Object.keys(peerDependencies)).toContain(name);
});

describe("the package manager", () => {
  test.each([
    [{ "pnpm-lock.yaml": "" }, {}, "pnpm"],
    [{ "yarn.lock": "" }, {}, "yarn"],
    [{ "bun.lock": "" }, {}, "bun"],
    [{ "package-lock.json": "" }, { npm_config_user_agent: "pnpm/10.0.0" }, "npm"],
    [{ "package.json": '{"packageManager":"yarn@4.1.0"}', "package-lock.json": "" }, {}, "yarn"],
    [{ "package.json": "{" }, { npm_config_user_agent: "bun/1.2.0 node/v24" }, "bun"],
    [{}, { npm_config_user_agent: "constructor/1" }, "npm"],
    [{}, {}, "npm"],
  ])("in a folder with %j and the environment %j is %s", (files, env, manager) => {
    expect(packageManagerOf(project(files), env)).toBe(manager);
  });

  test("is that of the nearest parent folder", () => {
    const place = project({ "pnpm-lock.yaml": "" });
    mkdirSync(join(place, "deep/er"), { recursive: true });
    expect(packageManagerOf(join(place, "deep/er"), {})).toBe("pnpm");
  });
});

test("prints the command with the versions that fit", async () => {
  const cwd = project({ "pnpm-lock.yaml": "" });
  const { code, stdout } = await xcache(["extras", "monitoring", "web"], { cwd });
  const words = EXTRAS.monitoring.map((name) => `${name}@>=${OLDEST_SUPPORTED[name]}`);
  expect(stdout.replaceAll('"', "")).toBe(`pnpm add ${words.join(" ")}\n`);
  expect(code).toBe(0);
});

test("reports when a feature needs no package", async () => {
  const { code, stdout, stderr } = await xcache(["extras", "fuzzy", "web"]);
  expect([code, stdout]).toEqual([0, ""]);
  expect(stderr).toContain("nothing to install");
});

test("--install runs the command, and fails if that fails", async () => {
  const cwd = project({ "yarn.lock": "" });
  const yarn = join(cwd, "yarn");
  const env = { PATH: `${cwd}:${process.env.PATH}` };
  writeFileSync(yarn, '#!/bin/sh\necho "$@" > ran\necho done\n');
  chmodSync(yarn, 0o755);
  const fine = await xcache(["extras", "monitoring", "--install"], { cwd, env });
  expect([fine.code, fine.stderr.includes("done"), fine.stdout.includes("done")]).toEqual([0, true, false]);
  expect(readFileSync(join(cwd, "ran"), "utf8")).toMatch(/^add @prometheus-io\/client@>=/);
  writeFileSync(yarn, "#!/bin/sh\nexit 7\n");
  const failed = await xcache(["extras", "monitoring", "--install"], { cwd, env });
  expect([failed.code, failed.stderr.includes("yarn exited with code 7")]).toEqual([1, true]);
});
