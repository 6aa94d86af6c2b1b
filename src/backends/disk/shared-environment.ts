// One environment shared by all backends of a thread on one folder: LMDB must not open it twice, and commits are shared.
import { isMainThread } from "node:worker_threads";
import type { BackendHost } from "../../core/backend.ts";
import { withDeadline } from "../../core/resilience/with-deadline.ts";
import { Committer } from "./committer.ts";
import { prepareFolder, type StoreFolder } from "./directory.ts";
import { busyError, openError } from "./disk-error.ts";
import { Environment } from "./environment.ts";
import { DiskEviction } from "./eviction.ts";
import { checkFormat } from "./format.ts";
import { type Lmdb, loadLmdb } from "./lmdb.ts";
import { FolderWatch } from "./lock/folder-watch.ts";
import { Gate, openApart, POLL_MS, pauseThread } from "./lock/gate.ts";
import type { ResolvedOptions } from "./options.ts";
import { Sweep } from "./sweep.ts";

/** Free pages and incoming values need address space besides the bounded bytes. */
const MAP_FACTOR = 4;
const LEAST_MAP_BYTES = 256 * 1024 ** 2;

export class SharedEnvironment {
  readonly environment: Environment;
  readonly committer: Committer;
  readonly sweep: Sweep;
  readonly isSynced: boolean;
  readonly #folder: FolderWatch;
  readonly #gate: Gate;
  /** Reference counts: a backend may enter again before it has left. */
  readonly #users = new Map<BackendHost, number>();
  readonly #limitMs: number;
  readonly #host: BackendHost;
  /** Resolves when the format of the store has been checked. */
  readonly checked: Promise<void>;
  #closing: Promise<void> | undefined;

  constructor(
    environment: Environment,
    { maxBytes, directory }: ResolvedOptions,
    host: BackendHost,
    isSynced: boolean,
  ) {
    this.environment = environment;
    this.isSynced = isSynced;
    const eviction = new DiskEviction(environment, {
      maxBytes,
      evicted: (key) => {
        for (const user of this.#users.keys()) user.evicted(key);
      },
    });
    this.#host = host;
    this.#limitMs = host.operationTimeoutMs;
    this.#folder = new FolderWatch(environment.path, host.clock);
    this.#gate = new Gate(environment.path, host.clock, this.#folder);
    this.committer = new Committer(environment, this.#gate, host.clock, eviction, this.#limitMs);
    this.sweep = new Sweep(environment, this.committer, host.clock, this.#limitMs);
    this.checked = checkFormat(this, directory, host.connectTimeoutMs);
  }

  /** Whether the folder was removed or replaced, checked at most half a second ago or by the latest commit. */
  get isGone(): boolean {
    return this.#folder.wasGone();
  }

  /** Returns false if it is closing and cannot be used. */
  enter(host: BackendHost): boolean {
    if (this.#closing === undefined && this.#folder.isGone()) this.retire().catch(this.#host.report);
    if (this.#closing !== undefined) return false;
    this.#users.set(host, (this.#users.get(host) ?? 0) + 1);
    return true;
  }

  /** Resolves when pending changes are committed; the last user closes the environment. */
  async leave(host: BackendHost): Promise<void> {
    const entered = this.#users.get(host) ?? 0;
    if (entered > 1) this.#users.set(host, entered - 1);
    else this.#users.delete(host);
    await this.#whenIdle();
    if (this.#users.size > 0 || this.#closing !== undefined) return;
    this.sweep.stop();
    // Closing during a commit that waits for another process would block the event loop.
    if (this.committer.isIdle) await this.#close();
    else
      this.committer
        .whenIdle()
        .then(() => (this.#users.size === 0 ? this.#close() : undefined), this.#host.report);
  }

  get closed(): Promise<void> | undefined {
    return this.#closing;
  }

  #whenIdle(): Promise<void> {
    return withDeadline(this.#host.clock, this.#limitMs, this.committer.whenIdle(), () => undefined);
  }

  /** Closes it even if it is in use: every user must open what is in the folder now. */
  retire(): Promise<void> {
    this.sweep.stop();
    return this.#close();
  }

  #close(): Promise<void> {
    this.#closing ??= this.#closeApart().finally(() => {
      opened.delete(this.environment.path);
      if (opened.size === 0) process.off("exit", atExit);
    });
    return this.#closing;
  }

  async #closeApart(): Promise<void> {
    await this.committer.whenIdle();
    await this.#gate.enterToClose(this.#limitMs);
    try {
      await this.environment.close();
    } finally {
      this.#gate.remove();
    }
  }

  /** The thread ends; LMDB closes the environment. */
  end(): void {
    if (this.committer.isAtRest) this.#gate.enterToEnd();
  }
}

const opened = new Map<string, SharedEnvironment>();
const opening = new Map<string, Promise<SharedEnvironment>>();

/** Opens the store in a folder, or shares the open one. Throws ConnectionError or MissingPeerError. */
export async function enterEnvironment(
  options: ResolvedOptions,
  host: BackendHost,
): Promise<SharedEnvironment> {
  const lmdb = await loadLmdb();
  const folder = prepareFolder(options.directory, options.durability);
  for (;;) {
    const present = opened.get(folder.path) ?? (await openOnce(lmdb, folder, options, host));
    if (!present.enter(host)) {
      await present.closed;
      continue;
    }
    try {
      await present.checked;
      return present;
    } catch (error) {
      await present.leave(host);
      throw error;
    }
  }
}

function openOnce(
  lmdb: Lmdb,
  folder: StoreFolder,
  options: ResolvedOptions,
  host: BackendHost,
): Promise<SharedEnvironment> {
  const present = opening.get(folder.path);
  if (present !== undefined) return present;
  const pending = open(lmdb, folder, options, host).finally(() => opening.delete(folder.path));
  opening.set(folder.path, pending);
  return pending;
}

async function open(
  lmdb: Lmdb,
  { path, isSynced }: StoreFolder,
  options: ResolvedOptions,
  host: BackendHost,
): Promise<SharedEnvironment> {
  try {
    const mapBytes = Math.max(LEAST_MAP_BYTES, options.maxBytes * MAP_FACTOR);
    const waiting = {
      clock: host.clock,
      limitMs: host.connectTimeoutMs,
      busy: (pids: readonly number[]) => busyError(options.directory, pids),
    };
    const environment = await openApart(
      path,
      waiting,
      () => new Environment(lmdb, { path, isSynced, mapBytes }),
    );
    const shared = new SharedEnvironment(environment, options, host, isSynced);
    if (opened.size === 0) process.on("exit", atExit);
    opened.set(path, shared);
    return shared;
  } catch (error) {
    throw openError(error, options.directory);
  }
}

/**
 * Called when the process exits. Node waits for its thread pool: a commit that ends by its deadline is waited for, but
 * one that waits for a lock held by another process would keep this one from ever exiting.
 */
function endDespiteLock(committers: Iterable<Committer>): void {
  // A worker that ends does not end its process.
  if (!isMainThread) return;
  for (const committer of committers) {
    while (!committer.isAtRest) {
      if (committer.isStuck) process.kill(process.pid, "SIGKILL");
      pauseThread(POLL_MS);
    }
  }
}

function atExit(): void {
  endDespiteLock([...opened.values()].map(({ committer }) => committer));
  for (const shared of opened.values()) shared.end();
}
