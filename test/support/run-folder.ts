// The temporary folder of one test run and the record of every server it started, so that exactly those can be ended.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";

const RUN_VARIABLE = "XCACHE_TEST_RUN_FOLDER";
const RUN_PREFIX = "xcache-test-";

/** A process id is reused; together with the moment the process began it is not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly began: string;
}

/** The process that runs under this id now; undefined if none does (a zombie does not count). */
export function identify(pid: number): ProcessIdentity | undefined {
  const began = process.platform === "linux" ? beganOnLinux(pid) : beganByPs(pid);
  return began === undefined ? undefined : { pid, began };
}

function beganOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // proc(5): the name in parentheses may hold anything; state is the first field after it, starttime the 20th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return `${fields[19]}@${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    return undefined;
  }
}

function beganByPs(pid: number): string | undefined {
  try {
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim() || undefined;
  } catch {
    return undefined;
  }
}

export function isSameProcess(known: ProcessIdentity): boolean {
  return identify(known.pid)?.began === known.began;
}

/** Where run folders may lie, the preferred one first. */
const PARENTS = [...new Set([tmpdir(), "/var/tmp", homedir()])];

/** Whether a program below this folder finds packages that were not installed for it. */
function lendsPackages(folder: string): boolean {
  const above = dirname(folder);
  return existsSync(join(folder, "node_modules")) || (above !== folder && lendsPackages(above));
}

/** Where Linux keeps files in memory, and what they may take of it at most. */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 4 * 1024 ** 3;

function hasMemoryFolder(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > MEMORY_BYTES;
  } catch {
    return false;
  }
}

/** Makes the folder of a run that this process owns, where the tests of a bare installation can trust in its bareness. */
export function createRunFolder(parents: readonly string[] = PARENTS): string {
  const usable = parents.filter((parent) => existsSync(parent));
  const parent = usable.find((parent) => !lendsPackages(parent)) ?? tmpdir();
  const folder = mkdtempSync(join(parent, RUN_PREFIX));
  mkdirSync(join(folder, "pids"));
  mkdirSync(join(folder, "ports"));
  // Databases write thousands of small files at every start. None of them is to outlive its server.
  if (hasMemoryFolder()) symlinkSync(mkdtempSync(join(MEMORY, RUN_PREFIX)), join(folder, SERVERS));
  else mkdirSync(join(folder, SERVERS));
  writeFileSync(join(folder, "owner.json"), JSON.stringify(identify(process.pid)));
  return folder;
}

const SERVERS = "servers";

/** What the servers of this run write. */
export const serversFolder = (): string => realpathSync(join(runFolder(), SERVERS));

/** The folder of the present run: the one the set-up made, else one made now. */
export function runFolder(): string {
  process.env[RUN_VARIABLE] ??= createRunFolder();
  return process.env[RUN_VARIABLE];
}

/** Records a server that was just started. Returns a function that removes the record once it has ended. */
export function recordServer(pid: number, folder = runFolder()): () => void {
  const file = join(folder, "pids", `${pid}.json`);
  const identity = identify(pid);
  if (identity === undefined) return () => {};
  writeFileSync(file, JSON.stringify(identity));
  return () => rmSync(file, { force: true });
}

/** Ends the servers a run left behind and removes its folder. Returns the ids it ended. */
export function sweepRun(folder: string): number[] {
  const ended: number[] = [];
  for (const name of listFolder(join(folder, "pids"))) {
    const identity = readIdentity(join(folder, "pids", name));
    if (identity === undefined || !isSameProcess(identity)) continue;
    try {
      process.kill(identity.pid, "SIGKILL");
      ended.push(identity.pid);
    } catch {
      // It ended between the two lines.
    }
  }
  for (const place of [realpathOf(join(folder, SERVERS)), folder])
    rmSync(place, { recursive: true, force: true, maxRetries: 3 });
  return ended;
}

function realpathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Sweeps runs whose owner was itself killed before it could. Folders of other users are left alone. */
export function sweepAbandonedRuns(parents: readonly string[] = PARENTS): number[] {
  const user = process.getuid?.();
  return parents
    .flatMap((parent) => listFolder(parent).map((name) => ({ parent, name })))
    .filter(({ name }) => name.startsWith(RUN_PREFIX))
    .map(({ parent, name }) => join(parent, name))
    .filter((folder) => statSync(folder, { throwIfNoEntry: false })?.uid === user)
    .flatMap((folder) => {
      const owner = readIdentity(join(folder, "owner.json"));
      return owner === undefined || isSameProcess(owner) ? [] : sweepRun(folder);
    });
}

function readIdentity(file: string): ProcessIdentity | undefined {
  try {
    const { pid, began } = JSON.parse(readFileSync(file, "utf8")) as ProcessIdentity;
    return Number.isSafeInteger(pid) && pid > 1 && typeof began === "string" ? { pid, began } : undefined;
  } catch {
    return undefined;
  }
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
