// Who made a marker: a thread, told apart by the name of the file from every other one that is, was or will be.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Clock } from "../../../core/clock.ts";
import { readBootId } from "./boot-id.ts";

/** What a system does not tell is empty. */
interface Owner {
  readonly boot: string;
  /** Within which process ids mean something. */
  readonly namespace: string;
  readonly pid: string;
  /** When the process began, in ticks since the boot: another one may get its id later. */
  readonly began: string;
  readonly thread: string;
  readonly threadBegan: string;
}

const NAME = /^([0-9a-f]*)_(\d*)_(\d+)_(\d*)_(\d*)_(\d*)_[0-9a-f]{16}$/;

/** Sharing a folder between such processes is not supported, so hardly any of them lives. */
const TRUST_IN_OTHER_NAMESPACE_MS = 10_000;
/** Where its id may have passed to another process. */
const TRUST_IN_ID_ALONE_MS = 60_000;

/** A name for a marker of this thread, each time another one. */
export function ownMarkerName(clock: Clock): string {
  const { boot, namespace, pid, began, thread, threadBegan } = ownIdentity();
  const unique = Buffer.from(clock.token(), "latin1").toString("hex");
  return [boot, namespace, pid, began, thread, threadBegan, unique].join("_");
}

export const isMarkerName = (name: string): boolean => NAME.test(name);

/** The process that a name tells of. */
export const processIn = (name: string): number => Number(NAME.exec(name)?.[3]);

/** For how long what the owner of a marker showed is to be believed, in milliseconds; 0: it has ended. */
export function trustMs(name: string): number {
  const found = NAME.exec(name);
  if (found === null) return 0;
  const [, boot, namespace, pid, began, thread, threadBegan] = found;
  const own = ownIdentity();
  if (boot !== own.boot) return 0;
  if (namespace !== own.namespace) return TRUST_IN_OTHER_NAMESPACE_MS;
  if (!isProcess(Number(pid))) return 0;
  const process = taskIn(`/proc/${pid}`);
  if (process === undefined || began === "") return TRUST_IN_ID_ALONE_MS;
  if (process.began !== began) return 0;
  // Of a process that was killed, the first thread may be gone while another one is still in the middle of a write.
  if (process.hasEnded) return threadsOf(`/proc/${pid}`) > 1 ? Number.POSITIVE_INFINITY : 0;
  return taskIn(`/proc/${pid}/task/${thread}`)?.began === threadBegan ? Number.POSITIVE_INFINITY : 0;
}

let identity: Owner | undefined;

function ownIdentity(): Owner {
  identity ??= readIdentity();
  return identity;
}

function readIdentity(): Owner {
  const pid = String(process.pid);
  const boot = readBootId()?.replaceAll("-", "") ?? "";
  const [ownPid, thread] = linkIn("/proc/thread-self").split("/task/");
  const own = taskIn("/proc/self");
  const ownThread = taskIn("/proc/thread-self");
  // A /proc of another namespace tells of other processes by these ids.
  if (ownPid !== pid || thread === undefined || own === undefined || ownThread === undefined) {
    return { boot, namespace: "", pid, began: "", thread: "", threadBegan: "" };
  }
  const namespace = linkIn("/proc/self/ns/pid").replaceAll(/\D/g, "");
  return { boot, namespace, pid, began: own.began, thread, threadBegan: ownThread.began };
}

function isProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** A process or a thread as Linux shows it; undefined where it does not. */
function taskIn(path: string): { readonly began: string; readonly hasEnded: boolean } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`${path}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // The name before it may have any character; then come the third field and those after it, the 22nd says when it began.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { began: fields[19] ?? "", hasEnded: fields[0] === "Z" || fields[0] === "X" };
}

function threadsOf(path: string): number {
  try {
    return readdirSync(`${path}/task`).length;
  } catch {
    return 0;
  }
}

function linkIn(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
