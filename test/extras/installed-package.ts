// The package as it is published, installed by npm with its dependencies: once per run, for all tests that look at it.
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { install } from "../../scripts/test/extras-folder.mjs";
import { isMade, packedPackage } from "../support/packed-package.ts";
import { runFolder } from "../support/run-folder.ts";
import { until } from "../support/until.ts";

/** Gives an application the packages that `npm install` of the tarball, and nothing else, has brought along. */
export async function addInstalledPackage(app: string): Promise<void> {
  cpSync(join(await installedOnce(), "node_modules"), join(app, "node_modules"), {
    recursive: true,
    verbatimSymlinks: true,
  });
}

/** The folder that it is installed in, by this process or by another one of the run. */
async function installedOnce(): Promise<string> {
  const folder = join(runFolder(), "installed-package");
  const outcome = join(folder, "outcome");
  if (isMade(folder)) {
    const problem = await installIn(folder).then(
      () => "",
      (error: Error) => error.message,
    );
    writeFileSync(outcome, problem);
  }
  await until(() => existsSync(outcome), { what: "npm has installed the package", timeoutMs: 60_000 });
  expect(readFileSync(outcome, "utf8")).toBe("");
  return folder;
}

async function installIn(folder: string): Promise<void> {
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const { tarball, dependencies } = packedPackage();
  await install(folder, [tarball, ...dependencies], { offline: true });
}
