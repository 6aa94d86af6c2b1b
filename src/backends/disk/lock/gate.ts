// Keeps opening an environment apart from committing to it and closing it, across all processes.
//
// While the LMDB inside the binding opens an environment, it sets the shared number of the latest commit to the one it
// read a moment before, which undoes a commit made in between (OpenLDAP ITS#9496). And the last process to close
// destroys the locks under one that is opening. So a thread that opens raises its marker and then waits until no other
// thread commits or closes; a thread that commits or closes raises its marker and then checks for openings. Each raises
// its marker before it checks, so at least one sees the other. Several may open at once: they read the same number.
import type { Clock } from "../../../core/clock.ts";
import type { FolderWatch } from "./folder-watch.ts";
import { type Marker, MarkerFolder, type RaisedMarker } from "./marker.ts";

export const POLL_MS = 2;
/**
 * How long an opening thread blocks commits before it yields, at first and at most: a process stopped in the middle of
 * a commit must not block all others.
 */
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 400;

/** Opens while no thread commits or closes. Throws `busy` with the processes that still did when the limit had passed. */
export async function openApart<T>(
  environment: string,
  { clock, limitMs, busy }: { clock: Clock; limitMs: number; busy: (pids: readonly number[]) => Error },
  open: () => T,
): Promise<T> {
  const due = clock.now() + limitMs;
  const openings = new MarkerFolder(environment, "opening", clock);
  const changes = new MarkerFolder(environment, "changing", clock);
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
    const marker = openings.add();
    let blocking: readonly RaisedMarker[];
    try {
      marker.raise();
      blocking = await stillRaised(changes, clock, Math.min(due, clock.now() + waitMs));
      if (blocking.length === 0) return open();
    } finally {
      marker.remove();
    }
    if (clock.now() >= due) throw busy([...new Set(blocking.map(({ pid }) => pid))]);
    await pause(clock, waitMs);
  }
}

/** The markers that stay raised from now until then. A thread without one does not begin while another opens. */
async function stillRaised(
  changes: MarkerFolder,
  clock: Clock,
  until: number,
): Promise<readonly RaisedMarker[]> {
  let markers = changes.raised();
  while (markers.length > 0 && clock.now() < until) {
    await pause(clock, POLL_MS);
    markers = markers.filter((marker) => marker.isRaised());
  }
  return markers;
}

/** Lets one thread commit to and close an environment that it has open. */
export class Gate {
  readonly #openings: MarkerFolder;
  readonly #changes: MarkerFolder;
  readonly #clock: Clock;
  readonly #folder: FolderWatch | undefined;
  #marker: Marker | undefined;

  constructor(environment: string, clock: Clock, folder?: FolderWatch) {
    this.#openings = new MarkerFolder(environment, "opening", clock);
    this.#changes = new MarkerFolder(environment, "changing", clock);
    this.#clock = clock;
    this.#folder = folder;
  }

  /**
   * Whether a commit may begin because no thread is opening the environment; none will until `leave`. Throws
   * ConnectionError if the folder is not the one that was opened.
   */
  enter(): boolean {
    this.#folder?.requirePresent();
    if (!this.#show()) return true;
    let isFree = false;
    try {
      isFree = this.#openings.raised().length === 0;
    } finally {
      if (!isFree) this.leave();
    }
    return isFree;
  }

  leave(): void {
    try {
      this.#marker?.lower();
    } catch {
      this.remove();
    }
  }

  /** Enters to close the environment. Enters anyway after the limit: it does no harm to a thread that hangs while opening. */
  async enterToClose(limitMs: number): Promise<void> {
    const due = this.#clock.now() + limitMs;
    while (!this.#canClose(this.#clock.now() >= due)) await pause(this.#clock, POLL_MS);
  }

  /** As `enterToClose`, for a thread that ends: its marker stays and is ignored once the thread is gone. */
  enterToEnd(): void {
    for (let leftMs = LONGEST_WAIT_MS; !this.#canClose(leftMs <= 0); leftMs -= POLL_MS) {
      pauseThread(POLL_MS);
    }
  }

  /** The environment is closed. */
  remove(): void {
    const marker = this.#marker;
    this.#marker = undefined;
    try {
      marker?.remove();
    } catch {
      // Other threads remove it once this thread is gone.
    }
  }

  #canClose(isOverdue: boolean): boolean {
    try {
      if (this.enter()) return true;
      if (isOverdue) this.#show();
      return isOverdue;
    } catch {
      // Staying open would be no better.
      return true;
    }
  }

  /** False if the environment's folder was removed: then no thread can open it. */
  #show(): boolean {
    try {
      this.#marker ??= this.#changes.add();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
    this.#marker.raise();
    return true;
  }
}

/** Keeps the process alive meanwhile: a caller waits for what follows. */
function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => clock.after(delayMs, resolve).hold?.(true));
}

const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread: while a process exits, no timer fires any more. */
export function pauseThread(delayMs: number): void {
  Atomics.wait(neverWoken, 0, 0, delayMs);
}
