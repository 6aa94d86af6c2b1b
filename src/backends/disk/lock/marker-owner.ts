// Identifies the thread that owns a marker: its file name is unique among all threads, past and future.
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Clock } from "../../../core/clock.ts";

/** What the system does not provide is empty. */
interface Owner {
  readonly boot: string;
  /** The PID namespace in which the process id is valid. */
  readonly namespace: string;
  readonly pid: string;
  /** When the process started, in ticks since boot: its id may be reused later. */
  readonly began: string;
  readonly thread: string;
  readonly threadBegan: string;
}

const NAME = /^([0-9a-f]*)_(\d*)_(\d+)_(\d*)_(\d*)_(\d*)_[0-9a-f]{16}$/;

/** Sharing a folder across PID namespaces is not supported, so the owner is hardly ever alive. */
const TRUST_IN_OTHER_NAMESPACE_MS = 10_000;
/** For an owner known by its process id only, which may have been reused. */
const TRUST_IN_ID_ALONE_MS = 60_000;

/** A new name for a marker of this thread. */
export function ownMarkerName(clock: Clock): string {
  const { boot, namespace, pid, began, thread, threadBegan } = ownIdentity();
  const unique = Buffer.from(clock.token(), "latin1").toString("hex");
  return [boot, namespace, pid, began, thread, threadBegan, unique].join("_");
}

export const isMarkerName = (name: string): boolean => NAME.test(name);

/** The process id in a marker name. */
export const processIn = (name: string): number => Number(NAME.exec(name)?.[3]);

/** For how many milliseconds a marker counts after its last change, by the state of its owner; 0: the owner has ended. */
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
  // The main thread of a killed process may be gone while another thread is still in the middle of a write.
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
  // In a /proc of another PID namespace these ids belong to other processes.
  if (ownPid !== pid || thread === undefined || own === undefined || ownThread === undefined) {
    return { boot, namespace: "", pid, began: "", thread: "", threadBegan: "" };
  }
  const namespace = linkIn("/proc/self/ns/pid").replaceAll(/\D/g, "");
  return { boot, namespace, pid, began: own.began, thread, threadBegan: ownThread.began };
}

/** Changes with every boot of the machine; undefined where the system does not provide it. */
export function readBootId(): string | undefined {
  const file = "/proc/sys/kernel/random/boot_id";
  try {
    return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
  } catch {
    return undefined;
  }
}

function isProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** A process or thread from Linux /proc; undefined if it is not there. */
function taskIn(path: string): { readonly began: string; readonly hasEnded: boolean } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`${path}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // proc(5): the name in parentheses may contain any character; the third field and those after it follow, starttime is the 22nd.
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
