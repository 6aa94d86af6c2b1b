// The machine the tests run on: files, rights and apt-get, behind the interface that binary.ts asks.
import { spawnSync } from "node:child_process";
import { accessSync, constants, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter } from "node:path";
import { findBinary, type Machine, TOOLS, type ToolName } from "./binary.ts";

export const thisMachine: Machine = {
  env: process.env,
  pathDelimiter: delimiter,
  isExecutable,
  isRoot: () => process.getuid?.() === 0,
  installDebianPackages,
  say: (line) => console.log(`[test set-up] ${line}`),
};

/** The path of a tool that the set-up has made sure of. */
export function binaryOf(name: ToolName): string {
  const tool = TOOLS.find((candidate) => candidate.name === name)!;
  const path = findBinary(tool, thisMachine);
  if (path === undefined)
    throw new Error(`${name} not found; run the tests with \`npm test\`, whose set-up installs it.`);
  return path;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Debian's packages start their service on install unless this file says no (invoke-rc.d(8)). */
const SERVICE_POLICY = "/usr/sbin/policy-rc.d";

function installDebianPackages(packages: readonly string[]): void {
  const ownPolicy = forbidServiceStart();
  try {
    runAptGet(["update"]);
    runAptGet(["install", "-y", "--no-install-recommends", ...packages]);
  } finally {
    if (ownPolicy) rmSync(SERVICE_POLICY, { force: true });
  }
}

/** Returns whether the policy file is ours; one that stands already is the machine's own and stays. */
function forbidServiceStart(): boolean {
  try {
    writeFileSync(SERVICE_POLICY, "#!/bin/sh\nexit 101\n", { flag: "wx", mode: 0o755 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function runAptGet(args: readonly string[]): void {
  // A lock held by another apt-get is waited for; apt gives up at once otherwise.
  const { status, error, stdout, stderr } = spawnSync("apt-get", ["-o", "DPkg::Lock::Timeout=120", ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
  });
  if (status === 0) return;
  const output = `${stdout ?? ""}${stderr ?? ""}`.trim().split("\n").slice(-15).join("\n");
  throw new Error(`apt-get ${args.join(" ")} failed: ${error?.message ?? `exit code ${status}`}\n${output}`);
}
